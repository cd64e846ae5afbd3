// `limpid inspect`: what is in a model file. Reads the header, loads no weights, needs no
// tokenizer.
//
// Each view of a model is a function that makes a report as JSON, and one that makes text from the
// report (inspect.h). Which view is shown depends on the options alone: --plan, --weights, --config
// without a model, or all of the header.
#include "cli/inspect.h"

#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/model_path.h"
#include "cli/output_path.h"
#include "generate/engine.h"
#include "insight/rope_chart.h"
#include "layouts/rope_scaling.h"
#include "model/configuration.h"
#include "model/decoder_from_checkpoint.h"
#include "quantize/file_type.h"
#include "quantize/quantized_cache.h"

namespace limpid::cli {
namespace {

struct InspectFlags {
  ModelFlags model;
  bool json = false;
  std::string rope_svg;
  bool weights = false;
  bool plan = false;
  std::string beside;
  std::string svg;
};

constexpr int kSingularValues = 3;       // of a tensor, in text
constexpr int kDrawnSingularValues = 6;  // of the 8 vectors of the iteration, the last are rough

void declare(CLI::App& app, InspectFlags& values) {
  add_switch(app, "--json", values.json, "everything, arrays in full");
  add_switch(app, "--plan", values.plan,
             "which layers would lie on which device, bytes of each, expected tokens a second");
  add_option(app, "--rope-svg FILE", values.rope_svg,
             "draw the rotary table, before and after scaling; - is standard output");
  CLI::Option* weights =
      add_switch(app, "--weights", values.weights,
                 "read the weights: distribution and largest singular values of each tensor");
  needs(add_option(app, "--beside MODEL2", values.beside,
                   "with --weights: how far the weights of another checkpoint are from them"),
        weights);
  needs(add_option(app, "--svg FILE", values.svg,
                   "with --weights: draw distribution and singular values of each tensor, those of "
                   "the other checkpoint as dashes; - is standard output"),
        weights);
  declare_model(app, values.model);
  for (const char* source : {"-m", "-hf"}) precedes(app, "--config", source);
}

// --config alone names a model that need not be there.
Checkpoint configuration(const OpenOptions& options) {
  check_configuration(options.config);
  Checkpoint checkpoint = find_configuration(options.config);
  if (!options.rope_scaling.empty())
    override_rope_scaling(checkpoint, parse_rope_scaling(options.rope_scaling));
  return checkpoint;
}

// The model as a run with these options would have it: names, types and shapes.
std::shared_ptr<const Checkpoint> as_it_would_run(const ModelFlags& model, bool is_configuration) {
  auto checkpoint = is_configuration
                        ? std::make_shared<const Checkpoint>(configuration(model.options))
                        : with_adapters(open_header(model), to_open_options(model));
  if (model.options.quantize.empty()) return checkpoint;
  return std::make_shared<const Checkpoint>(
      quantized_shapes(*checkpoint, file_type_from_name(model.options.quantize)));
}

void draw(const std::string& path, const std::string& picture) {
  write_text(path, picture);
  if (path != "-") print_log("drawn: " + path);
}

void run(const InspectFlags& values) {
  const ModelFlags& model = values.model;
  const auto print = [&](const Json& report, const auto& to_text) {
    write_out(values.json ? dump_json(report, 2) + "\n" : to_text(report));
  };
  const bool is_configuration = model.model.empty() && model.repository.empty() &&
                                !model.options.config.empty();  // which then names the model
  LIMPID_CHECK(ArgumentError,
               !values.weights || (!is_configuration && model.options.quantize.empty()),
               "--weights reads the weights of a file as they are: give -m, without --quantize");
  LIMPID_CHECK(ArgumentError, !is_configuration || values.plan || model.options.quantize.empty(),
               "--config alone shows every type; give --quantize with --plan");
  LIMPID_CHECK(ArgumentError, !is_configuration || model.options.lora.empty(),
               "--lora changes the weights of a model: give -m");
  const bool draws_rope = !values.rope_svg.empty();
  LIMPID_CHECK(ArgumentError, values.plan + values.weights + draws_rope <= 1,
               "--plan, --weights and --rope-svg are different views: give one of them");
  LIMPID_CHECK(ArgumentError, values.svg.empty() || !values.json,
               "--svg draws what --json would list: give one of them");
  LIMPID_CHECK(
      ArgumentError, values.rope_svg != "-" || !values.json,
      "--rope-svg - and --json both write to standard output: name a file for the picture");
  const auto checkpoint = as_it_would_run(model, is_configuration);
  for (const std::string& picture : {values.svg, values.rope_svg})
    check_output(picture, *checkpoint);
  if (values.plan)
    return print(inspect_plan(*checkpoint, to_open_options(model)), plan_report_text);
  if (values.weights) {
    std::shared_ptr<const Checkpoint> other;
    if (!values.beside.empty()) {
      other = open_header(second_model(model, values.beside));
      check_output(values.svg, *other);
    }
    const bool draws = !values.svg.empty();
    const Json report =
        inspect_weights(*checkpoint, other.get(), draws ? kDrawnSingularValues : kSingularValues,
                        to_open_options(model).n_threads);
    if (!draws) return print(report, weights_text);
    return draw(values.svg, weights_chart(report));
  }
  const Json report = is_configuration ? inspect_configuration(*checkpoint)
                                       : inspect_checkpoint(*checkpoint, to_open_options(model));
  if (draws_rope) {
    LIMPID_CHECK(UnsupportedError, is_configuration || !report["model"].is_null(), "--rope-svg: {}",
                 report["problem"].get<std::string>());
    draw(values.rope_svg, rope_chart(read_spec(*checkpoint)));
    if (values.rope_svg == "-") return;
  }
  return print(report, is_configuration ? configuration_text : checkpoint_text);
}

}  // namespace

Command inspect_command() {
  return {
      "what is in a model file, and the memory it needs",
      "inspect -m FILE | --config NAME|PATH [options]",
      "Metadata, tensors, rotary table, chat template, and the memory that the model needs. "
      "Does not load the weights unless --weights is given. --config alone: parameters "
      "and memory of a named model (llama-3-8b, "
      "gpt2-xl, …), of a folder with config.json or params.json, or of such a file; the weights "
      "are not needed. --plan works with both, and with --quantize TYPE.",
      "limpid inspect -m smollm2\nlimpid inspect -m smollm2 -c 8192 -ctk f32 --json\n"
      "limpid inspect -m smollm2 --plan --device opencl --gpu-layers 8\n"
      "limpid inspect -m smollm2 --rope-scaling linear:4 --rope-svg rope.svg\n"
      "limpid inspect -m smollm2 --weights --svg weights.svg\n"
      "limpid inspect --config llama-3-8b\n"
      "limpid inspect --config llama-3-8b --quantize q4_k_m --plan",
      bind<InspectFlags, declare, run>};
}

}  // namespace limpid::cli
