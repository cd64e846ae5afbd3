// `limpid devices`: what this machine can run on.
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/machine_report.h"
#include "cli/output.h"
#include "executor/cpu/isa.h"
#include "executor/executors.h"

namespace limpid::cli {

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
  const auto available = available_isas();
  const std::vector<std::string> isas(available.begin(), available.end());
  MachineLimits limits;
  if (measure) limits = measure_limits(machine.n_cores);
  write_out(json ? machine_json(machine, isas, isa, limits).dump(2) + "\n"
                 : machine_text(machine, isas, isa, limits));
  return kExitOk;
}

}  // namespace limpid::cli
