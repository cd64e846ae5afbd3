// What Linux says about the machine, most of it in text files: /proc/cpuinfo for the CPU, the
// control group for the memory. A program in a container sees the whole machine in /proc but may
// use only a part of it. The numbers here are those of the part: two cores where the affinity mask
// allows two of 64.
#include "cli/machine.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string_view>

#include "base/system_limits.h"
#include "base/text.h"
#include "executor/cpu/isa.h"
#include "executor/executors.h"

namespace limpid::cli {
namespace {

// The value of the first line "key : value" of /proc/cpuinfo: "model name\t: AMD EPYC"; ARM has
// "CPU implementer\t: 0x41" instead.
std::string cpu_field(std::string_view key) {
  std::ifstream stream("/proc/cpuinfo");
  for (std::string line; std::getline(stream, line);) {
    const size_t colon = line.find(':');
    if (line.starts_with(key) && colon != line.npos)
      return std::string(trimmed(std::string_view(line).substr(colon + 1)));
  }
  return "";
}

// The instruction sets that matter to kernels, of those that the kernel of the system reports.
std::vector<std::string> kernel_features() {
  // As Linux spells them, for x86 and for 64-bit ARM.
  constexpr std::string_view kWanted[] = {
      "avx2",        "fma",         "f16c",        "avx_vnni", "avx512f",  "avx512bw",
      "avx512_vnni", "avx512_bf16", "avx512_fp16", "amx_int8", "amx_bf16", "asimd",
      "asimdhp",     "asimddp",     "i8mm",        "bf16",     "sve",      "sve2"};
  std::istringstream words(cpu_field("flags") + " " + cpu_field("Features"));
  std::vector<std::string> found;
  for (std::string word; words >> word;) {
    if (std::ranges::count(kWanted, word) > 0) found.push_back(word);
  }
  return found;
}

// What --device takes.
std::string name_of(const gpu::DeviceInfo& device) {
  return device.index == 0 ? device.api : fmt::format("{}:{}", device.api, device.index);
}

// A line for each device, under the name that --device takes, and one for each API without any:
//   GPUs      cuda      NVIDIA H100, CUDA 13.0, sm_90a, 132 units, 85.03 GB
//             opencl    none: the OpenCL loader is not installed …
std::string gpu_text(const std::vector<GpuApi>& apis) {
  std::string text;
  const auto add = [&](std::string_view device, const std::string& what) {
    text += fmt::format("{:10}{:9} {}\n", text.empty() ? "GPUs" : "", device, what);
  };
  for (const auto& [api, list] : apis) {
    for (const gpu::DeviceInfo& d : list.devices) {
      add(name_of(d), fmt::format("{}{}, {}{}{}, {}, {}", d.name, d.is_cpu ? " (a CPU)" : "",
                                  d.driver, d.architecture.empty() ? "" : ", ", d.architecture,
                                  count(d.n_units, "unit"), format_bytes(d.memory_bytes)));
    }
    if (list.devices.empty()) add(api, "none: " + list.problem);
  }
  return text;
}

}  // namespace

// In a container, the part that it may use: the cores of its affinity mask, the memory of its
// control group.
Machine look_at_machine() {
  Machine machine;
  machine.cpu = cpu_field("model name");
  if (machine.cpu.empty()) machine.cpu = cpu_field("CPU implementer");
  if (machine.cpu.empty()) machine.cpu = "unknown CPU";
  machine.n_cores = usable_cores();
  machine.features = kernel_features();
  for (const std::string_view isa : available_isas()) machine.isas.emplace_back(isa);
  machine.isa = choose_isa("").name;
  machine.memory_bytes = total_memory();
  machine.available_bytes = available_memory();
  machine.cache_bytes = third_level_cache();
  return machine;
}

// A label of ten columns, then the fact.
std::string machine_text(const Machine& machine, const MachineLimits& limits) {
  std::string text = fmt::format(
      "CPU       {}, {}\n"
      "features  {}\n"
      "kernels   {} (chosen: {}; LIMPID_ISA=NAME for another)\n"
      "memory    {}, {} available\n"
      "{}",
      machine.cpu, count(machine.n_cores, "core"), fmt::join(machine.features, " "),
      fmt::join(machine.isas, ", "), machine.isa, format_bytes(machine.memory_bytes),
      format_bytes(machine.available_bytes), gpu_text(machine.gpus));
  if (limits.n_threads > 0)
    text +=
        fmt::format("limits    {}, {}\n", rates_text(limits), count(limits.n_threads, "thread"));
  return text;
}

Json machine_json(const Machine& machine, const MachineLimits& limits) {
  Json json = {{"cpu", machine.cpu},
               {"cores", machine.n_cores},
               {"features", machine.features},
               {"isas", machine.isas},
               {"isa", machine.isa},
               {"memory_bytes", machine.memory_bytes},
               {"available_bytes", machine.available_bytes},
               {"gpus", Json::array()},
               {"gpu_problems", Json::object()}};
  for (const auto& [api, list] : machine.gpus) {
    for (const gpu::DeviceInfo& device : list.devices) {
      json["gpus"].push_back({{"device", name_of(device)},
                              {"name", device.name},
                              {"driver", device.driver},
                              {"architecture", device.architecture},
                              {"memory_bytes", device.memory_bytes},
                              {"units", device.n_units},
                              {"is_cpu", device.is_cpu}});
    }
    if (!list.problem.empty()) json["gpu_problems"][std::string(api)] = list.problem;
  }
  if (limits.n_threads > 0) {
    json["limits"] = {{"threads", limits.n_threads},
                      {"read_bytes_per_second", limits.read_bytes_per_second},
                      {"f32_flops_per_second", limits.flops_per_second.f32},
                      {"bf16_flops_per_second", limits.flops_per_second.bf16},
                      {"int8_flops_per_second", limits.flops_per_second.int8}};
  }
  return json;
}

}  // namespace limpid::cli
