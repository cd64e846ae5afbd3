#include "cli/open_model.h"

#include <fmt/format.h>

#include <chrono>
#include <filesystem>

#include "base/check.h"
#include "cli/model_path.h"
#include "cli/output.h"
#include "cli/pull_repository.h"
#include "cli/sampler_settings.h"
#include "executor/executors.h"
#include "generate/engine.h"
#include "model/model_files.h"
#include "model/tokenizer_from_metadata.h"
#include "quantize/quantized_cache.h"
#include "tokenizer/tokenizer_files.h"

namespace limpid::cli {
namespace {

std::function<bool(uint64_t, uint64_t)> progress_of(ProgressBar& bar) {
  return [&bar](uint64_t done, uint64_t total) {
    bar.show(done, total, fmt::format("{} of {}", format_bytes(done), format_bytes(total)));
    return true;
  };
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void log_opened(const Checkpoint& checkpoint, const DecoderSpec& spec, int64_t n_ctx,
                double seconds) {
  print_log(
      fmt::format("{} ({}): {}, {} layers, {} tokens of vocabulary, context {}; opened in "
                  "{:.2f} s",
                  checkpoint.path, checkpoint.format, spec.architecture, spec.n_layers,
                  spec.vocab_size, n_ctx, seconds));
}

}  // namespace

std::string model_path(const ModelFlags& flags) {
  const std::string path = flags.repository.empty()
                               ? resolve_model(flags.model)
                               : path_of_repository(flags.repository, flags.repository_file);
  const std::string name = std::filesystem::path(path).filename().string();
  std::error_code absent;
  LIMPID_CHECK(ArgumentError,
               !is_tokenizer_file(name) || std::filesystem::is_directory(path, absent),
               "{} belongs to a tokenizer and holds no weights: name the model's folder or its "
               "weights (limpid tokenize needs no more than the tokenizer)",
               path);
  return path;
}

std::shared_ptr<const Checkpoint> open_header(const ModelFlags& flags) {
  return std::make_shared<const Checkpoint>(
      open_model_files({model_path(flags), flags.options.tokenizer_path, flags.options.config,
                        flags.options.rope_scaling}));
}

std::shared_ptr<const Tokenizer> open_tokenizer(const ModelFlags& flags,
                                                std::string_view encoding) {
  const std::string model = flags.repository.empty() ? flags.model : model_path(flags);
  const TokenizerFiles files = find_tokenizer_files(
      flags.options.tokenizer_path.empty() ? model : flags.options.tokenizer_path);
  if (has_tokenizer(files)) return tokenizer_from(files, encoding);
  return tokenizer_from(*open_header(flags));
}

std::unique_ptr<Model> load_weights_only(const ModelFlags& flags,
                                         std::shared_ptr<const Checkpoint> checkpoint,
                                         const WrapExecutor& wrap) {
  const auto start = std::chrono::steady_clock::now();
  const OpenOptions options = to_open_options(flags);
  ProgressBar bar("loading");
  ExecutorOptions executor_options;
  executor_options.n_threads = options.n_threads;
  LoadOptions load;
  load.n_ctx = options.n_ctx;
  load.progress = progress_of(bar);
  if (!options.quantize.empty()) {
    checkpoint = std::make_shared<const Checkpoint>(
        quantized_through_cache(*checkpoint, file_type_from_name(options.quantize),
                                quantized_cache_folder(), {options.n_threads, load.progress}));
  }
  auto executor = make_executor(options.executor, executor_options);
  if (wrap) executor = wrap(std::move(executor));
  auto model = Model::load(std::move(checkpoint), std::move(executor), load);
  bar.wipe();
  if (flags.verbose) {
    log_opened(model->checkpoint(), model->spec(), model->n_ctx(), seconds_since(start));
  }
  return model;
}

LanguageModel open_language_model(const ModelFlags& flags, const std::string& chat_template) {
  const auto start = std::chrono::steady_clock::now();
  ProgressBar bar("loading");
  OpenOptions options = to_open_options(flags);
  options.chat_template = chat_template;
  options.progress = progress_of(bar);
  LanguageModel model = LanguageModel::open(model_path(flags), options);
  bar.wipe();
  if (flags.verbose) {
    Engine& engine = *model.engine();
    log_opened(engine.checkpoint(), engine.model().spec(), model.n_ctx(), seconds_since(start));
  }
  const MemoryPlan& plan = model.memory_plan();
  if (model.n_ctx() > plan.n_ctx_train && flags.options.rope_scaling.empty()) {
    print_log(fmt::format(
        "-c {}: the model learned {} tokens of context; what lies beyond makes little sense to it",
        model.n_ctx(), plan.n_ctx_train));
  }
  if (plan.n_ctx_reduced) {
    print_log(
        fmt::format("context reduced to {} of the model's {} tokens to fit memory; -c N sets it",
                    model.n_ctx(), plan.n_ctx_train));
  }
  return model;
}

void apply_model_samplers(const std::vector<std::string>& given, bool verbose,
                          const LanguageModel& model, SamplerOptions& sampler) {
  const std::string changed = apply_recommended(given, model.recommended_sampler(), sampler);
  if (verbose && !changed.empty())
    print_log(fmt::format("sampling as the model recommends: {}", changed));
}

}  // namespace limpid::cli
