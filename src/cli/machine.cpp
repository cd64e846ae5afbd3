#include "cli/machine.h"

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <sstream>
#include <string_view>
#include <thread>

namespace limpid::cli {
namespace {

// The value of the first line "key : value" of /proc/cpuinfo or /proc/meminfo.
std::string proc_field(const char* file, std::string_view key) {
  std::ifstream stream(file);
  for (std::string line; std::getline(stream, line);) {
    if (!line.starts_with(key)) continue;
    const size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const size_t begin = line.find_first_not_of(" \t", colon + 1);
    return begin == std::string::npos ? "" : line.substr(begin);
  }
  return "";
}

uint64_t meminfo_bytes(std::string_view key) {
  std::istringstream value(proc_field("/proc/meminfo", key));
  uint64_t kibibytes = 0;
  value >> kibibytes;
  return kibibytes * 1024;
}

// The limit of the control group, version 2 or 1; the largest number when there is none.
uint64_t control_group_bytes() {
  for (const char* path :
       {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    std::ifstream stream(path);
    uint64_t limit = 0;
    if (stream >> limit) return limit;  // "max" is no number
  }
  return ~uint64_t{0};
}

std::vector<std::string> kernel_features() {
  // As Linux spells them, for x86 and for 64-bit ARM.
  constexpr std::array<std::string_view, 18> kWanted = {
      "avx2",        "fma",         "f16c",        "avx_vnni", "avx512f",  "avx512bw",
      "avx512_vnni", "avx512_bf16", "avx512_fp16", "amx_int8", "amx_bf16", "asimd",
      "asimdhp",     "asimddp",     "i8mm",        "bf16",     "sve",      "sve2"};
  std::istringstream words(proc_field("/proc/cpuinfo", "flags") + " " +
                           proc_field("/proc/cpuinfo", "Features"));
  std::vector<std::string> found;
  for (std::string word; words >> word;) {
    if (std::find(kWanted.begin(), kWanted.end(), word) != kWanted.end()) found.push_back(word);
  }
  return found;
}

int usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
  return static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
}

}  // namespace

Machine look_at_machine() {
  Machine machine;
  machine.cpu = proc_field("/proc/cpuinfo", "model name");
  if (machine.cpu.empty()) machine.cpu = proc_field("/proc/cpuinfo", "CPU implementer");
  if (machine.cpu.empty()) machine.cpu = "unknown CPU";
  machine.n_cores = usable_cores();
  machine.features = kernel_features();
  machine.memory_bytes = std::min(meminfo_bytes("MemTotal"), control_group_bytes());
  machine.available_bytes = std::min(meminfo_bytes("MemAvailable"), machine.memory_bytes);
  return machine;
}

}  // namespace limpid::cli
