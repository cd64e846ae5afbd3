#include "generate/engine.h"

#include <utility>

#include "base/cache_folder.h"
#include "base/check.h"
#include "generate/devices.h"
#include "generate/memory_plan.h"
#include "layouts/lora_adapter.h"
#include "model/decoder_from_checkpoint.h"
#include "model/model_files.h"
#include "model/tokenizer_from_metadata.h"
#include "quantize/quantized_cache.h"

namespace limpid {

DType cache_dtype(const std::string& name) {
  if (name == "f16") return DType::kF16;
  if (name == "f32") return DType::kF32;
  throw ArgumentError(fmt::format("unknown KV cache type {}; choose f16 or f32", name));
}

std::shared_ptr<const Checkpoint> open_header(const std::string& path, const OpenOptions& options) {
  return std::make_shared<const Checkpoint>(
      open_model_files({path, options.tokenizer_path, options.config, options.rope_scaling}));
}

std::shared_ptr<const Checkpoint> with_adapters(std::shared_ptr<const Checkpoint> checkpoint,
                                                const OpenOptions& options) {
  if (options.lora.empty()) return checkpoint;
  auto adapted = std::make_shared<Checkpoint>(*checkpoint);
  add_lora_adapters(*adapted, options.lora);
  return adapted;
}

namespace {

// `checkpoint` itself, or its quantised copy if OpenOptions::quantize is set.
std::shared_ptr<const Checkpoint> quantized(std::shared_ptr<const Checkpoint> checkpoint,
                                            const OpenOptions& options) {
  if (options.quantize.empty()) return checkpoint;
  return std::make_shared<const Checkpoint>(
      quantized_through_cache(*checkpoint, file_type_from_name(options.quantize),
                              cache_folder("quantized"), {options.n_threads, options.progress}));
}

// The end of a message of a device that has no memory.
std::string plan_note(const MemoryPlan& plan) {
  return plan.devices.empty() ? "" : "; the plan was " + plan_text(plan);
}

SchedulerOptions scheduler_options(const OpenOptions& options, const MemoryPlan& plan) {
  return {.n_batch = options.n_batch,
          .k_dtype = cache_dtype(options.cache_type_k),
          .v_dtype = cache_dtype(options.cache_type_v),
          .check_memory = options.check_memory,
          .plan_note = plan_note(plan)};
}

// Model::load; where a device has no memory, the error names the plan.
std::unique_ptr<Model> load(std::shared_ptr<const Checkpoint> checkpoint,
                            std::unique_ptr<Executor> executor, const MemoryPlan& plan,
                            const OpenOptions& options) {
  bool is_cancelled = false;
  LoadOptions load{.n_ctx = plan.n_ctx, .first_layer_in_file = plan.first_layer_in_file};
  load.progress = [&](uint64_t done, uint64_t total) {
    is_cancelled = options.progress && !options.progress(done, total);
    return !is_cancelled;
  };
  try {
    return Model::load(std::move(checkpoint), std::move(executor), load);
  } catch (const ResourceError& error) {
    if (is_cancelled) throw;
    throw ResourceError(error.what() + plan_note(plan));
  }
}

}  // namespace

OpenedWeights open_weights(std::shared_ptr<const Checkpoint> header, const OpenOptions& options,
                           const WrapExecutor& wrap) {
  Devices devices = open_devices(options);  // cheap, so its errors come first
  auto checkpoint = with_adapters(quantized(std::move(header), options), options);
  MemoryPlan plan = make_memory_plan(*checkpoint, read_spec(*checkpoint), options, devices);
  if (options.check_memory) check_memory_plan(plan);
  if (options.on_plan) options.on_plan(plan);
  auto executor = join_devices(std::move(devices), plan, wrap);
  auto model = load(std::move(checkpoint), std::move(executor), plan, options);
  return {std::move(model), std::move(plan)};
}

std::shared_ptr<Engine> Engine::open(const std::string& path, const OpenOptions& options,
                                     const WrapExecutor& wrap) {
  auto header = open_header(path, options);
  read_spec(*header);  // throws for an unknown architecture, whose tokenizer may be unknown too
  std::shared_ptr<const Tokenizer> tokenizer;
  if (limpid::has_tokenizer(*header)) tokenizer = tokenizer_from(*header);
  OpenedWeights weights = open_weights(std::move(header), options, wrap);
  return std::make_shared<Engine>(std::move(weights.model), std::move(tokenizer), options,
                                  std::move(weights.plan));
}

Engine::Engine(std::unique_ptr<Model> model, std::shared_ptr<const Tokenizer> tokenizer,
               OpenOptions options, MemoryPlan plan)
    : model_(std::move(model)),
      tokenizer_(std::move(tokenizer)),
      options_(std::move(options)),
      plan_(std::move(plan)),
      scheduler_(*model_, scheduler_options(options_, plan_)) {}

const std::shared_ptr<const Tokenizer>& Engine::tokenizer() const {
  if (tokenizer_ == nullptr) fail_without_tokenizer(checkpoint());
  return tokenizer_;
}

std::string Engine::chat_template_source() const {
  if (!options_.chat_template.empty()) return options_.chat_template;
  return std::string(checkpoint().metadata.string("tokenizer.chat_template").value_or(""));
}

// Several chats may ask at the same time; the first one parses.
const ChatTemplate& Engine::chat_template() {
  const std::lock_guard lock(template_mutex_);
  if (!template_) {
    std::string source = chat_template_source();
    LIMPID_CHECK(UnsupportedError, !source.empty(),
                 "{} has no chat template: give one, or continue plain text instead of chatting",
                 checkpoint().path);
    template_.emplace(std::move(source));
  }
  return *template_;
}

const std::shared_ptr<Engine>& engine_of(const LanguageModel& model) { return model.engine_; }

}  // namespace limpid
