// A model ready for use: checkpoint, tokenizer, chat template and weights in an executor.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "checkpoint/checkpoint.h"
#include "executor/executors.h"
#include "generate/scheduler.h"
#include "limpid/memory_plan.hpp"
#include "limpid/model.hpp"
#include "model/model.h"
#include "tokenizer/chat_template.h"
#include "tokenizer/tokenizer.h"

namespace limpid {

// One opened model, shared by all sessions, chats and batches that use it.
class Engine {
 public:
  // Opens a model: open_header, the tokenizer, open_weights. Throws FormatError, UnsupportedError,
  // ArgumentError, ResourceError. A checkpoint without a tokenizer opens too; a tokenizer that
  // cannot be reproduced exactly is an error.
  static std::shared_ptr<Engine> open(const std::string& path, const OpenOptions& options = {},
                                      const WrapExecutor& wrap = {});
  // Creates an engine for a model that was built elsewhere. `tokenizer` may be null.
  Engine(std::unique_ptr<Model> model, std::shared_ptr<const Tokenizer> tokenizer,
         OpenOptions options, MemoryPlan plan);

  Model& model() { return *model_; }
  const Checkpoint& checkpoint() const { return model_->checkpoint(); }
  const MemoryPlan& memory_plan() const { return plan_; }
  int64_t n_ctx() const { return model_->n_ctx(); }
  int64_t vocab_size() const { return model_->spec().vocab_size; }

  bool has_tokenizer() const { return tokenizer_ != nullptr; }
  // Throws UnsupportedError when there is none.
  const std::shared_ptr<const Tokenizer>& tokenizer() const;
  // From the options, or else the model's own (tokenizer.chat_template); empty when there is none.
  std::string chat_template_source() const;
  // The template, parsed at the first call. Throws UnsupportedError when there is none or it cannot
  // be parsed.
  const ChatTemplate& chat_template();

  // The mixes of adapters that tasks name.
  AdapterMixes& adapter_mixes() { return adapter_mixes_; }

  // Runs the sequences of all sessions, batches and requests, in one KV cache.
  Scheduler& scheduler() { return scheduler_; }

 private:
  std::unique_ptr<Model> model_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  OpenOptions options_;
  MemoryPlan plan_;
  std::mutex template_mutex_;
  std::optional<ChatTemplate> template_;
  AdapterMixes adapter_mixes_;
  Scheduler scheduler_;
};

// The engine behind a handle.
const std::shared_ptr<Engine>& engine_of(const LanguageModel& model);

// The steps of Engine::open, for programs that need only some of them.
//
// Metadata and views of the tensors. Values of the options replace those of the files.
std::shared_ptr<const Checkpoint> open_header(const std::string& path, const OpenOptions& options);
// `checkpoint` itself, or one with the adapters of OpenOptions::lora.
std::shared_ptr<const Checkpoint> with_adapters(std::shared_ptr<const Checkpoint> checkpoint,
                                                const OpenOptions& options);

struct OpenedWeights {
  std::unique_ptr<Model> model;
  MemoryPlan plan;
};
// Loads the weights of `header`, quantised and with adapters as the options say, into the devices
// of the options. The engine and the commands open weights here, so that all check the plan of
// memory. `wrap` may put another executor around that of the options: one that shows, times or
// changes what it does. Throws FormatError, UnsupportedError, ArgumentError, ResourceError.
OpenedWeights open_weights(std::shared_ptr<const Checkpoint> header, const OpenOptions& options,
                           const WrapExecutor& wrap = {});

// The dtype of a cache option, "f16" or "f32". Throws ArgumentError, which lists these, for others.
DType cache_dtype(const std::string& name);

}  // namespace limpid
