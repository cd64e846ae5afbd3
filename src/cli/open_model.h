// Opening what -m names, with a progress bar.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "checkpoint/checkpoint.h"
#include "cli/options.h"
#include "executor/executors.h"
#include "limpid/model.hpp"
#include "model/model.h"
#include "tokenizer/tokenizer.h"

namespace limpid::cli {

// The path of the model that -m or -hf names. A model of -hf is fetched if it is not here. Throws
// as resolve_model and pull_repository do, and ArgumentError for a tokenizer's file.
std::string model_path(const ModelFlags& flags);

// The flags for a second model, which is compared with the first one. --tokenizer, --lora,
// --quantize and --rope-scaling belong to the first one; so does --config, unless the second model
// is a bare state dictionary as well. Throws what model_path and open_checkpoint throw.
ModelFlags second_model(const ModelFlags& first, const std::string& name);

// The checkpoint in Limpid's names, with the overrides that the flags give.
std::shared_ptr<const Checkpoint> open_header(const ModelFlags& flags);

// The tokenizer of a model, or of tokenizer files alone: a tokenizer.json, a folder that holds one,
// …
// `encoding` is read_tiktoken's.
std::shared_ptr<const Tokenizer> open_tokenizer(const ModelFlags& flags,
                                                std::string_view encoding = {});
// Whether open_tokenizer makes anything of `encoding`.
bool takes_encoding(const ModelFlags& flags);

// A note for a device that is used for the first time: with PoCL, loading the model and the first
// steps take minutes then. "" for others. An executor has some of its kernels compiled once it is
// made, so this is called before.
std::string note_of_first_use(const OpenOptions& options);

// The weights alone: works for a model without a tokenizer, or with one that Limpid does not know.
// `wrap` may put another executor around the one that the flags choose.
std::unique_ptr<Model> load_weights_only(const ModelFlags& flags,
                                         std::shared_ptr<const Checkpoint> checkpoint,
                                         const WrapExecutor& wrap = {});

// A WrapExecutor that makes a T around the executor. `made` then points to it, so that the caller
// can ask it afterwards; the model owns it.
template <typename T>
WrapExecutor wrap_in(T*& made) {
  return [&made](std::unique_ptr<Executor> inner) {
    auto wrapper = std::make_unique<T>(std::move(inner));
    made = wrapper.get();
    return wrapper;
  };
}

// Everything. `chat_template` (Jinja) replaces the model's own unless it is empty.
LanguageModel open_language_model(const ModelFlags& flags, const std::string& chat_template = {},
                                  const WrapExecutor& wrap = {});

}  // namespace limpid::cli
