// `limpid devices`: what this machine can run on.
//
// --kernels writes the GPU programs as text. The program puts them together from parts when it runs
// (for a type of weights, for a number of rows), so no source file has the text that a compiler
// gets. A person who profiles or debugs a kernel needs this text.
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/atomic_file.h"
#include "cli/command.h"
#include "cli/machine.h"
#include "cli/output_path.h"
#include "executor/gpu/kernel_sources.h"

namespace limpid::cli {
namespace {

struct DevicesFlags {
  bool json = false;
  bool measure = false;
  std::string kernels;
};

void declare(CLI::App& app, DevicesFlags& values) {
  add_switch(app, "--measure", values.measure, "also measure its limits (about a second)");
  add_switch(app, "--json", values.json, "for machines");
  add_option(app, "--kernels DIR", values.kernels,
             "instead: write the text of the GPU programs there, as compilers get it");
}

// Writes a file NAME.cl for each program. CUDA compiles the same sources.
void write_kernels(const std::string& folder) {
  make_folder(folder);
  for (const gpu::ProgramSource& source : gpu::all_programs()) {
    write_text(std::filesystem::path(folder) / (source.name + ".cl"), source.text);
  }
}

void run(const DevicesFlags& values) {
  if (!values.kernels.empty()) return write_kernels(values.kernels);
  Machine machine = look_at_machine();
  machine.gpus = gpu_apis();
  const MachineLimits limits =
      values.measure ? measure_limits(machine.n_cores, "bf16") : MachineLimits{};
  values.json ? write_json(machine_json(machine, limits), 2)
              : write_out(machine_text(machine, limits));
}

}  // namespace

Command devices_command() {
  return {"what this machine can run on", "devices [options]",
          "What this machine can run on: CPU, memory, GPUs under the names that --device takes.",
          "limpid devices\nlimpid devices --measure --json", bind<DevicesFlags, declare, run>};
}

}  // namespace limpid::cli
