#include "cli/machine_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "cli/output.h"

namespace limpid::cli {

// A label of ten columns, then the fact.
std::string machine_text(const Machine& machine, const std::vector<std::string>& isas,
                         const std::string& isa, const MachineLimits& limits) {
  std::string text = fmt::format("CPU       {}, {} cores\n", machine.cpu, machine.n_cores);
  text += fmt::format("features  {}\n", fmt::join(machine.features, " "));
  text += fmt::format("kernels   {} (chosen: {}; LIMPID_ISA=NAME for another)\n",
                      fmt::join(isas, ", "), isa);
  text += fmt::format("memory    {}, {} available\n", format_bytes(machine.memory_bytes),
                      format_bytes(machine.available_bytes));
  text += "GPUs      none used: no GPU executor in this version\n";
  if (limits.n_threads > 0) {
    text += fmt::format(
        "limits    {:.1f} GB/s read, {:.0f} GFLOP/s f32, {:.0f} GOP/s int8, {} threads\n",
        limits.read_bytes_per_second / 1e9, limits.f32_flops_per_second / 1e9,
        limits.int8_flops_per_second / 1e9, limits.n_threads);
  }
  return text;
}

nlohmann::ordered_json machine_json(const Machine& machine, const std::vector<std::string>& isas,
                                    const std::string& isa, const MachineLimits& limits) {
  nlohmann::ordered_json json;
  json["cpu"] = machine.cpu;
  json["cores"] = machine.n_cores;
  json["features"] = machine.features;
  json["isas"] = isas;
  json["isa"] = isa;
  json["memory_bytes"] = machine.memory_bytes;
  json["available_bytes"] = machine.available_bytes;
  json["gpus"] = nlohmann::ordered_json::array();
  if (limits.n_threads > 0) {
    json["limits"] = {{"threads", limits.n_threads},
                      {"read_bytes_per_second", limits.read_bytes_per_second},
                      {"f32_flops_per_second", limits.f32_flops_per_second},
                      {"int8_flops_per_second", limits.int8_flops_per_second}};
  }
  return json;
}

}  // namespace limpid::cli
