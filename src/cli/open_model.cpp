// From what the user names to a model that runs:
//   -m NAME or -hf REPO  ->  a path           model_path(), which may fetch it
//   path  ->  a checkpoint's header           open_header(): metadata, names, views of the tensors
//   header  ->  weights in an executor        load_weights_only(), by the library's open_weights()
//   path  ->  all of these and a tokenizer    open_language_model(), by Engine::open()
// A command stops at the first step that provides what it needs: inspect at the header, logits at
// the weights, chat at the end.
#include "cli/open_model.h"

#include <algorithm>
#include <filesystem>

#include "base/cache_folder.h"
#include "base/check.h"
#include "base/paths.h"
#include "cli/error_words.h"
#include "cli/inspect.h"
#include "cli/model_path.h"
#include "cli/output.h"
#include "cli/pull.h"
#include "executor/cpu/isa.h"
#include "executor/gpu/gpu_devices.h"
#include "generate/engine.h"
#include "generate/memory_plan.h"
#include "model/tokenizer_from_metadata.h"
#include "tokenizer/tokenizer_files.h"

namespace limpid::cli {
namespace {

// Products of bf16 are those of weights of bf16, which this model may not have, and they are faster
// than those of f32 only where the CPU has a fast instruction for them.
void note_products(const Model& model, const OpenOptions& options) {
  if (options.products != "bf16") return;
  const auto is_bf16 = [](const auto& tensor) { return tensor.second.dtype == DType::kBF16; };
  if (std::ranges::none_of(model.checkpoint().tensors, is_bf16)) {
    print_log(
        "--products bf16 changes nothing: no weight of this model is bf16; --quantize bf16 makes "
        "them so");
  } else if (options.device == "cpu" && choose_isa("").name != "avx512bf16") {
    print_log("--products bf16: this CPU multiplies f32 as fast or faster, and more exactly");
  }
}

// A context beyond the one that the model was trained with works, but is seldom intended.
void note_long_context(const Model& model, const OpenOptions& options) {
  if (model.n_ctx() <= model.spec().n_ctx_train || !options.rope_scaling.empty()) return;
  print_log(fmt::format(
      "-c {}: the model learned {} tokens of context; beyond that its text makes little sense",
      model.n_ctx(), model.spec().n_ctx_train));
}

// What the user may want to know of a model that was opened, which took so many seconds.
void report_opened(const Model& model, const ModelFlags& flags, double seconds) {
  const DecoderSpec& spec = model.spec();
  if (spec.position == PositionKind::kLearned) set_largest_context(spec.n_ctx_train);
  if (flags.verbose) {
    print_log(
        fmt::format("{} ({}): {}, {}, {} tokens of vocabulary, context {}; opened in {:.2f} s",
                    model.checkpoint().path, model.checkpoint().format, spec.architecture,
                    count(spec.n_layers, "layer"), spec.vocab_size, model.n_ctx(), seconds));
  }
  note_products(model, flags.options);
  note_long_context(model, flags.options);
}

// With tokens that the model does not have, it is not the tokenizer that the model learned with.
void note_foreign_tokenizer(Engine& engine) {
  const int64_t n_tokens = engine.tokenizer()->vocab_size();
  const int64_t n_rows = engine.model().spec().vocab_size;
  if (n_tokens <= n_rows) return;
  print_log(fmt::format(
      "the tokenizer (--tokenizer) has {} tokens and the model {}: it may belong to another model",
      n_tokens, n_rows));
}

// Measuring takes a moment, so that this is only for -v. A plan that fits need not leave the memory
// that measuring takes.
void log_speed(const MemoryPlan& plan, int n_threads) {
  try {
    const double tokens_per_second = measure_speed(plan, n_threads).tokens_per_second;
    if (tokens_per_second > 0) {
      print_log(fmt::format("at most {} tokens a second, by the rates that were measured now",
                            speed_text(tokens_per_second)));
    }
  } catch (const ResourceError& error) {
    print_log(fmt::format("tokens a second are unknown: {}", error.what()));
  }
}

// Options that show the progress and, before anything is loaded, report what is not as the user may
// expect; with -v also where everything will lie, and how fast two devices can be.
OpenOptions reporting_options(const ModelFlags& flags, ProgressBar& bar) {
  OpenOptions options = to_open_options(flags);
  options.progress = bar.of_bytes();
  options.on_plan = [&flags, first_use = note_of_first_use(options)](const MemoryPlan& plan) {
    if (!first_use.empty()) print_log(first_use);
    const bool is_shared = plan.devices.size() > 1;
    const bool is_elsewhere = plan.devices.front().device == flags.options.split &&
                              flags.options.device != flags.options.split &&
                              flags.options.gpu_layers != 0;
    if (is_elsewhere) print_log(fmt::format("not one layer fits {}", flags.options.device));
    if (is_shared || is_elsewhere || flags.verbose) print_log(plan_text(plan));
    if (const std::string note = in_file_note(plan); !note.empty()) print_log(note);
    if (is_shared && flags.verbose) log_speed(plan, flags.options.n_threads);
  };
  return options;
}

TokenizerFiles tokenizer_files(const ModelFlags& flags) {
  const std::string model = flags.repository.empty() ? flags.model : model_path(flags);
  return find_tokenizer_files(flags.options.tokenizer_path.empty() ? model
                                                                   : flags.options.tokenizer_path);
}

}  // namespace

std::string note_of_first_use(const OpenOptions& options) {
  const std::string name = options.gpu_layers == 0 ? "" : device_without_kernels(options.device);
  return name.empty() ? ""
                      : fmt::format("compiling kernels for {} (first use; kept in {})…", name,
                                    cache_folder("gpu"));
}

std::string model_path(const ModelFlags& flags) {
  std::string path =
      flags.repository.empty()
          ? resolve_model(flags.model)
          : path_of_repository(flags.repository, flags.repository_file, flags.is_offline);
  const std::string name = std::filesystem::path(path).filename().string();
  LIMPID_CHECK(ArgumentError, !is_tokenizer_file(name) || is_folder(path),
               "{} belongs to a tokenizer and holds no weights: name the model's folder or its "
               "weights (limpid tokenize needs no more than the tokenizer)",
               path);
  return path;
}

ModelFlags second_model(const ModelFlags& first, const std::string& name) {
  ModelFlags second = first.with_model(name);
  OpenOptions& options = second.options;
  options.tokenizer_path.clear();
  options.lora.clear();
  options.quantize.clear();
  options.rope_scaling.clear();
  if (!options.config.empty() && open_checkpoint(model_path(second)).naming != Naming::kStateDict) {
    options.config.clear();
  }
  return second;
}

std::shared_ptr<const Checkpoint> open_header(const ModelFlags& flags) {
  return limpid::open_header(model_path(flags), flags.options);
}

bool takes_encoding(const ModelFlags& flags) {
  return find_rank_file(tokenizer_files(flags)) != nullptr;
}

// A path may name tokenizer files alone, which is enough here; otherwise the tokenizer is part of a
// checkpoint, whose header has it.
std::shared_ptr<const Tokenizer> open_tokenizer(const ModelFlags& flags,
                                                std::string_view encoding) {
  const TokenizerFiles files = tokenizer_files(flags);
  if (has_tokenizer(files)) return tokenizer_from(files, encoding);
  return tokenizer_from(*open_header(flags));
}

std::unique_ptr<Model> load_weights_only(const ModelFlags& flags,
                                         std::shared_ptr<const Checkpoint> checkpoint,
                                         const WrapExecutor& wrap) {
  const Stopwatch watch;
  ProgressBar bar("loading");
  auto model = open_weights(std::move(checkpoint), reporting_options(flags, bar), wrap).model;
  bar.wipe();
  report_opened(*model, flags, watch.seconds());
  return model;
}

LanguageModel open_language_model(const ModelFlags& flags, const std::string& chat_template,
                                  const WrapExecutor& wrap) {
  const Stopwatch watch;
  ProgressBar bar("loading");
  OpenOptions options = reporting_options(flags, bar);
  options.chat_template = chat_template;
  LanguageModel model(Engine::open(model_path(flags), options, wrap));
  bar.wipe();
  report_opened(engine_of(model)->model(), flags, watch.seconds());
  if (!options.tokenizer_path.empty()) note_foreign_tokenizer(*engine_of(model));
  const MemoryPlan& plan = model.memory_plan();
  if (plan.n_ctx_reduced) {
    print_log(
        fmt::format("context reduced to {} of the model's {} tokens to fit memory; -c N sets it",
                    model.n_ctx(), plan.n_ctx_train));
  }
  return model;
}

}  // namespace limpid::cli
