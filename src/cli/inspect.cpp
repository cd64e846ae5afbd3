// `limpid inspect`: what is in a model file. Reads the header, loads no weights, needs no
// tokenizer.
#include "cli/inspect.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "cli/answer.h"
#include "cli/command.h"
#include "cli/inspect_config.h"
#include "cli/open_model.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/output_path.h"
#include "generate/memory_plan.h"
#include "insight/rope_chart.h"
#include "limpid/error.hpp"
#include "model/configuration.h"
#include "model/registry.h"

namespace limpid::cli {
namespace {

// The names that the file has for the tensors of `checkpoint`, found by the place of their bytes. A
// tensor that is made of others has no such name.
std::map<std::string, std::string> names_in_file(const Checkpoint& checkpoint) {
  using Place = std::pair<std::string, ptrdiff_t>;  // file, offset
  const auto place_of = [](const Checkpoint& holder, const TensorView& tensor) {
    for (const auto& file : holder.files) {
      const auto* begin = file->bytes().data();
      const auto* data = static_cast<const std::byte*>(tensor.data);
      if (data >= begin && data < begin + file->size()) return Place(file->path(), data - begin);
    }
    return Place();
  };
  const Checkpoint given = open_checkpoint(checkpoint.path);
  std::map<Place, std::string> theirs;
  for (const auto& [name, tensor] : given.tensors) theirs[place_of(given, tensor)] = name;
  theirs.erase(Place());
  std::map<std::string, std::string> names;
  for (const auto& [name, tensor] : checkpoint.tensors) {
    const auto found = theirs.find(place_of(checkpoint, tensor));
    if (found != theirs.end() && found->second != name) names[name] = found->second;
  }
  return names;
}

// A file that Limpid cannot run is shown all the same, with the reason in `problem`.
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
  if (!checkpoint.format.starts_with("gguf")) inspection.names_in_file = names_in_file(checkpoint);
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

// A built-in name, or what lies at a path.
int inspect_configuration(const std::string& config, bool json) {
  std::vector<std::string> names;
  for (const std::string_view name : configuration_names()) names.emplace_back(name);
  const bool is_path = std::filesystem::exists(config);
  if (!is_path && std::ranges::find(names, config) == names.end()) {
    throw ArgumentError(
        fmt::format("--config {}: no such file, and no configuration of that name{} (there are {})",
                    config, did_you_mean(config, names), fmt::join(names, ", ")));
  }
  const ConfigurationReport report =
      report_configuration(is_path ? configuration_of_files(config) : named_configuration(config));
  write_out(json ? dump_json(to_json(report), 2) + "\n" : to_text(report));
  return kExitOk;
}

void draw_rope(const Inspection& inspection, const std::string& path) {
  LIMPID_CHECK(UnsupportedError, inspection.spec.has_value(), "--rope-svg: {}", inspection.problem);
  write_text(path, rope_chart(*inspection.spec));
  if (path != "-") print_log("drawn: " + path);
}

struct InspectFlags {
  ModelFlags model;
  bool json = false;
  std::string rope_svg;
};

void declare(CLI::App& app, InspectFlags& values) {
  add_switch(app, "--json", values.json, "everything, arrays in full");
  add_option(app, "--rope-svg FILE", values.rope_svg,
             "draw the rotary table, before and after scaling; - is standard output");
  declare_model(app, values.model);
}

int run(const InspectFlags& values) {
  const ModelFlags& model = values.model;
  if (model.model.empty() && model.repository.empty() && !model.options.config.empty())
    return inspect_configuration(model.options.config, values.json);
  const auto checkpoint = open_header(model);
  const Inspection inspection = look_at(*checkpoint, to_open_options(model));
  if (!values.rope_svg.empty()) draw_rope(inspection, values.rope_svg);
  write_out(values.json ? dump_json(to_json(inspection), 2) + "\n" : to_text(inspection));
  return kExitOk;
}

}  // namespace

Command inspect_command() {
  return {"inspect",
          "what is in a model file, and the memory it needs",
          "inspect -m FILE | --config NAME|PATH [options]",
          "Metadata, tensors, rotary table, chat template, and the memory that running it "
          "takes. Loads no weights.\n--config alone: parameters and memory of a named model "
          "(llama-3-8b, gpt2-xl, …), of a folder\nwith config.json or params.json, or of such "
          "a file; no weights need be there.",
          "limpid inspect -m smollm2\nlimpid inspect -m smollm2 -c 8192 -ctk f32 --json\n"
          "limpid inspect -m smollm2 --rope-scaling linear:4 --rope-svg rope.svg\n"
          "limpid inspect --config llama-3-8b",
          bind<InspectFlags, declare, run>};
}

}  // namespace limpid::cli
