// `limpid devices`: what this machine can run on.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/machine.h"
#include "cli/output.h"
#include "executor/cpu/isa.h"
#include "executor/executors.h"

namespace limpid::cli {
namespace {

nlohmann::ordered_json to_json(const Machine& machine, const std::string& chosen) {
  nlohmann::ordered_json json;
  json["cpu"] = machine.cpu;
  json["cores"] = machine.n_cores;
  json["features"] = machine.features;
  json["isas"] = available_isas();
  json["isa"] = chosen;
  json["memory_bytes"] = machine.memory_bytes;
  json["available_bytes"] = machine.available_bytes;
  json["gpus"] = nlohmann::ordered_json::array();
  return json;
}

}  // namespace

int devices_command(const Arguments& arguments) {
  bool json = false;
  bool measure = false;
  Flags flags("devices [options]", "What this machine can run on.",
              "limpid devices\nlimpid devices --measure --json");
  flags.toggle("--measure", measure, "also measure its limits (about a second)");
  flags.toggle("--json", json, "for machines");
  if (!flags.parse(arguments)) return kExitOk;

  const Machine machine = look_at_machine();
  const std::string isa(choose_isa("").name);
  MachineLimits limits;
  if (measure) limits = measure_limits(machine.n_cores);
  if (json) {
    auto document = to_json(machine, isa);
    if (measure) {
      document["limits"] = {{"threads", limits.n_threads},
                            {"read_bytes_per_second", limits.read_bytes_per_second},
                            {"f32_flops_per_second", limits.f32_flops_per_second}};
    }
    write_out(document.dump(2) + "\n");
    return kExitOk;
  }
  write_out(fmt::format("CPU       {}, {} cores\n", machine.cpu, machine.n_cores));
  write_out(fmt::format("features  {}\n", fmt::join(machine.features, " ")));
  write_out(fmt::format("kernels   {} (chosen: {}; LIMPID_ISA=NAME for another)\n",
                        fmt::join(available_isas(), ", "), isa));
  write_out(fmt::format("memory    {}, {} available\n", format_bytes(machine.memory_bytes),
                        format_bytes(machine.available_bytes)));
  write_out("GPUs      none used: no GPU executor in this version\n");
  if (measure) {
    write_out(fmt::format("limits    {:.1f} GB/s read, {:.0f} GFLOP/s f32, {} threads\n",
                          limits.read_bytes_per_second / 1e9, limits.f32_flops_per_second / 1e9,
                          limits.n_threads));
  }
  return kExitOk;
}

}  // namespace limpid::cli
