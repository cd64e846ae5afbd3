// `limpid inspect`: what is in a model file. Reads the header, loads no weights, needs no
// tokenizer.
#include "cli/inspect.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/answer.h"
#include "cli/command.h"
#include "cli/open_model.h"
#include "cli/options.h"
#include "cli/output.h"
#include "generate/memory_plan.h"
#include "limpid/error.hpp"
#include "model/registry.h"

namespace limpid::cli {
namespace {

Inspection look_at(const Checkpoint& checkpoint, const OpenOptions& options) {
  Inspection inspection;
  inspection.checkpoint = &checkpoint;
  for (const auto& [name, tensor] : checkpoint.tensors) {
    TypeTotal& total = inspection.totals[std::string(dtype_info(tensor.dtype).name)];
    for (TypeTotal* sum : {&total, &inspection.all}) {
      sum->n_tensors += 1;
      sum->n_elements += tensor.shape.n_elements();
      sum->n_bytes += tensor.n_bytes();
    }
  }
  for (const auto& file : checkpoint.files) inspection.n_file_bytes += file->size();
  if (checkpoint.tensors.empty()) {
    inspection.problem = "a vocabulary alone: there are no tensors to run";
    return inspection;
  }
  try {
    inspection.spec = read_spec(checkpoint);
    inspection.plan = make_memory_plan(checkpoint, *inspection.spec, options);
  } catch (const Error& error) {
    inspection.problem = error.what();
  }
  return inspection;
}

}  // namespace

int inspect_command(const Arguments& arguments) {
  ModelFlags model;
  bool json = false;
  Flags flags(
      "inspect -m FILE [options]",
      "Metadata, tensors, rotary table, chat template, and the memory that running it takes. "
      "Loads no weights.",
      "limpid inspect -m smollm2\nlimpid inspect -m smollm2 -c 8192 -ctk f32 --json");
  flags.toggle("--json", json, "everything, arrays in full");
  declare_model(flags, model);
  if (!flags.parse(arguments)) return kExitOk;

  const auto checkpoint = open_header(model);
  const Inspection inspection = look_at(*checkpoint, to_open_options(model));
  write_out(json ? dump_json(to_json(inspection), 2) + "\n" : to_text(inspection));
  return kExitOk;
}

}  // namespace limpid::cli
