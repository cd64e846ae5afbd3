#include "cli/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <sstream>
#include <string_view>

#include "base/system_memory.h"
#include "base/usable_cores.h"

namespace limpid::cli {
namespace {

// The value of the first line "key : value" of /proc/cpuinfo.
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

// The instruction sets that matter to kernels, of those that the kernel of the system reports.
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

}  // namespace

Machine look_at_machine() {
  Machine machine;
  machine.cpu = proc_field("/proc/cpuinfo", "model name");
  if (machine.cpu.empty()) machine.cpu = proc_field("/proc/cpuinfo", "CPU implementer");
  if (machine.cpu.empty()) machine.cpu = "unknown CPU";
  machine.n_cores = usable_cores();
  machine.features = kernel_features();
  machine.memory_bytes = total_memory();
  machine.available_bytes = available_memory();
  return machine;
}

}  // namespace limpid::cli
