// `limpid devices`: what this machine can run on.
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/machine.h"

namespace limpid::cli {

namespace {

struct DevicesFlags {
  bool json = false;
  bool measure = false;
};

void declare(CLI::App& app, DevicesFlags& values) {
  add_switch(app, "--measure", values.measure, "also measure its limits (about a second)");
  add_switch(app, "--json", values.json, "for machines");
}

int run(const DevicesFlags& values) {
  const Machine machine = look_at_machine();
  const MachineLimits limits = values.measure ? measure_limits(machine.n_cores) : MachineLimits{};
  write_out(values.json ? machine_json(machine, limits).dump(2) + "\n"
                        : machine_text(machine, limits));
  return kExitOk;
}

}  // namespace

Command devices_command() {
  return {"devices",
          "what this machine can run on",
          "devices [options]",
          "What this machine can run on.",
          "limpid devices\nlimpid devices --measure --json",
          bind<DevicesFlags, declare, run>};
}

}  // namespace limpid::cli
