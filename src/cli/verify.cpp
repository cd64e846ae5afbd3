// `limpid verify`: compares a model with a stored trace, or with another checkpoint of the same
// model, layer by layer.
//
// A model that computes almost the right numbers still writes fluent text, so errors in a layer are
// seldom seen in what it says. Here each activation is compared with that of the reference:
//
//   layer  activation              shape        error
//       -  embedding             [9, 36]            0
//       0  attn_heads            [9, 36]     3.65e-07  token 5, element 14
//
// The error is that of the worst row (a token): the norm of the difference, divided by the norm of
// the reference's row. Errors add up from layer to layer, so the first that departs is the one to
// look at.
#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/mapped_file.h"
#include "checkpoint/torch_checkpoint.h"
#include "cli/command.h"
#include "insight/comparison.h"
#include "model/decoder_from_checkpoint.h"
#include "model/tokenizer_from_metadata.h"

namespace limpid::cli {
namespace {

namespace fs = std::filesystem;
constexpr int64_t kDefaultTokens = 32;
// Tolerances. Errors of sums in f32 stay below the first, those of 8-bit activations times
// quantised weights below the second.
constexpr double kFloatTolerance = 1e-3;
constexpr double kQuantizedTolerance = 0.3;

struct VerifyFlags {
  ModelFlags model;
  std::string trace;
  std::string against;
  std::optional<std::string> ids;
  std::optional<std::string> prompt;
  std::optional<double> tolerance;
  bool json = false;
};

// trace.safetensors in the folder, or NAME.trace.safetensors beside NAME.gguf.
std::string trace_beside(const std::string& model) {
  const fs::path path(model);
  const fs::path trace = fs::is_directory(path)
                             ? path / "trace.safetensors"
                             : path.parent_path() / (path.stem().string() + ".trace.safetensors");
  LIMPID_CHECK(
      ArgumentError, fs::exists(trace),
      "compared with what? give --trace FILE (tools/golden/make_trace.py makes one; {} is not "
      "there) or --against MODEL2",
      trace.string());
  return trace.string();
}

// The tokens of --ids or -p. By default tokens from all over the vocabulary: multiples of a prime
// modulo its size, so that every run compares the same ones.
std::vector<TokenId> choose_ids(const VerifyFlags& values, const Checkpoint& checkpoint) {
  LIMPID_CHECK(ArgumentError, !values.ids || !values.prompt,
               "which tokens? give --ids or -p, not both");
  LIMPID_CHECK(ArgumentError, !values.prompt || !values.prompt->empty(),
               "the text of -p is empty: give some tokens, or leave it out");
  if (values.prompt) return tokenizer_from(checkpoint)->encode(*values.prompt);
  std::vector<TokenId> ids = parse_token_ids(values.ids.value_or(""), "--ids");
  LIMPID_CHECK(ArgumentError, !values.ids || !ids.empty(),
               "--ids is empty: give some tokens, or leave it out");
  if (values.ids) return ids;
  const DecoderSpec spec = read_spec(checkpoint);
  for (int64_t i = 0; i < std::min(kDefaultTokens, spec.n_ctx_train); ++i)
    ids.push_back(static_cast<TokenId>((i * 40503 + 1) % spec.vocab_size));
  return ids;
}

// Compares the records of .pth files with their checksums; opening a file does not do this.
void check_records(const Checkpoint& checkpoint) {
  for (const auto& file : checkpoint.files) {
    if (text_of(*file).starts_with(kTorchMagic)) verify_torch_records(file->path());
  }
}

// Activations are rounded to eight bits before a product with quantised weights, so both sides may
// differ by much more than sums in f32 do.
bool has_quantized(const Checkpoint& checkpoint) {
  return std::ranges::any_of(checkpoint.tensors,
                             [](const auto& entry) { return is_quantized(entry.second.dtype); });
}

// Runs the tokens through the model and looks at its activations. By default the context is no
// longer than they are.
Trace trace_of(ModelFlags flags, const std::shared_ptr<const Checkpoint>& checkpoint,
               std::span<const TokenId> ids) {
  int64_t& n_ctx = flags.options.n_ctx;
  if (n_ctx == 0)
    n_ctx = std::clamp<int64_t>(std::ssize(ids), 1, read_spec(*checkpoint).n_ctx_train);
  ProbeExecutor* probe = nullptr;
  const auto model = load_weights_only(flags, checkpoint, wrap_in(probe));
  return trace_model(*model, *probe, ids);
}

std::string place_text(const ActivationError& each) {
  return each.layer < 0 ? each.what : fmt::format("layer {}, {}", each.layer, each.what);
}

std::string to_text(const Comparison& comparison, double tolerance, size_t n_tokens) {
  std::string text = fmt::format("{}, tolerance {:g}\n\n{:>5}  {:<14} {:>14} {:>12}  {}\n",
                                 count(n_tokens, "token"), tolerance, "layer", "activation",
                                 "shape", "error", "at");
  for (const ActivationError& each : comparison.activations) {
    // Embedding, final norm and logits belong to no layer.
    text += fmt::format("{:>5}  {:<14} {:>14} {:>12.3g}",
                        each.layer < 0 ? "-" : std::to_string(each.layer), each.what,
                        fmt::format("[{}, {}]", each.n_rows, each.n_cols), each.error);
    if (each.error > 0) text += fmt::format("  token {}, element {}", each.token, each.element);
    text += '\n';
  }
  for (const std::string& name : comparison.missing)
    text += fmt::format("{} is in the reference only\n", name);
  if (const ActivationError* first = comparison.first_departure(tolerance)) {
    return text + fmt::format(
                      "\ndeparts at {}, token {}, element {}: {:g}, in the reference {:g} "
                      "(error {:.3g})\n",
                      place_text(*first), first->token, first->element, first->value,
                      first->reference, first->error);
  }
  const ActivationError& worst = *comparison.worst();
  return text + fmt::format("\nagrees: at most {:.3g} ({})\n", worst.error, place_text(worst));
}

Json to_json(const ActivationError& each) {
  return {{"layer", each.layer < 0 ? Json() : Json(each.layer)},
          {"activation", each.what},
          {"shape", {each.n_rows, each.n_cols}},
          {"error", each.error},  // null where it is infinite
          {"token", each.token},
          {"element", each.element}};
}

Json to_json(const Comparison& comparison, double tolerance, size_t n_tokens) {
  const ActivationError* first = comparison.first_departure(tolerance);
  Json json = {{"tokens", n_tokens},
               {"tolerance", tolerance},
               {"agrees", first == nullptr},
               {"first_departure", first == nullptr ? Json() : to_json(*first)},
               {"missing", comparison.missing},
               {"activations", Json::array()}};
  for (const ActivationError& each : comparison.activations)
    json["activations"].push_back(to_json(each));
  return json;
}

void declare(CLI::App& app, VerifyFlags& values) {
  add_option(app, "--trace FILE", values.trace,
             "per-layer activations; default: NAME.trace.safetensors beside the model, or "
             "trace.safetensors in its folder");
  add_option(app, "--against MODEL2", values.against, "a checkpoint of the same model");
  add_option(app, "--ids LIST", values.ids, "with --against: token ids between commas");
  add_option(app, "-p,--prompt TEXT", values.prompt, "with --against: a text (default: 32 tokens)");
  add_option(app, "--tolerance X", values.tolerance, Range{.least = 0},
             "largest error, relative to the size of the reference's row (0.001; 0.3 where "
             "weights are quantised)");
  add_switch(app, "--json", values.json, "the table as JSON");
  declare_model_with_f32_cache(app, values.model);
}

int run(const VerifyFlags& values) {
  LIMPID_CHECK(ArgumentError, values.trace.empty() || values.against.empty(),
               "give --trace or --against, not both");

  const auto checkpoint = open_header(values.model);
  check_records(*checkpoint);
  for (const std::string& problem : text_problems(*checkpoint))
    print_log(fmt::format("{}: {}", checkpoint->path, problem));
  bool quantized = has_quantized(*checkpoint) || !values.model.options.quantize.empty();
  Trace reference;
  if (values.against.empty()) {
    LIMPID_CHECK(ArgumentError, !values.ids && !values.prompt,
                 "a trace has its own tokens; --ids and -p go with --against");
    const std::string path =
        values.trace.empty() ? trace_beside(model_path(values.model)) : values.trace;
    reference = read_trace(open_checkpoint(path));
  } else {
    const ModelFlags other = second_model(values.model, values.against);
    const auto second = open_header(other);
    check_records(*second);
    quantized = quantized || has_quantized(*second);
    const int64_t n = read_spec(*checkpoint).vocab_size, n_other = read_spec(*second).vocab_size;
    LIMPID_CHECK(ArgumentError, n == n_other,
                 "{} has {} tokens and {} has {}: give two checkpoints of one model",
                 checkpoint->path, n, second->path, n_other);
    reference = trace_of(other, second, choose_ids(values, *checkpoint));
  }
  const Trace trace = trace_of(values.model, checkpoint, reference.token_ids);
  const Comparison comparison = compare_traces(trace, reference);
  const double tolerance =
      values.tolerance.value_or(quantized ? kQuantizedTolerance : kFloatTolerance);
  const size_t n_tokens = reference.token_ids.size();
  write_out(values.json ? dump_json(to_json(comparison, tolerance, n_tokens), 2) + "\n"
                        : to_text(comparison, tolerance, n_tokens));
  return comparison.first_departure(tolerance) == nullptr ? kExitOk : kExitError;
}

}  // namespace

Command verify_command() {
  return {"whether a model computes what a reference computes, layer by layer",
          "verify -m MODEL [--trace FILE | --against MODEL2] [options]",
          "Checks whether a model computes the same numbers as a reference, layer by layer. The "
          "reference is a trace, a file with the activations that another engine computed for the "
          "same tokens, or another checkpoint of the same model. Prints the largest error of each "
          "activation, and names the first layer whose error exceeds the tolerance (exit code 1).",
          "limpid verify model.gguf --trace model.trace.safetensors\n"
          "limpid verify model.gguf --against original/ -p 'Once upon a time'",
          bind<VerifyFlags, declare, run>};
}

}  // namespace limpid::cli
