// A language model: a checkpoint opened for use.
//
//   limpid::OpenOptions options;
//   options.n_ctx = 4096;
//   options.progress = [](uint64_t done, uint64_t total) {
//     std::cerr << 100 * done / total << " %\n";
//     return true;
//   };
//   auto model = limpid::LanguageModel::open("model.gguf", options);
//   std::vector<limpid::TokenId> ids = model.encode("Once upon a time");
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "limpid/memory_plan.hpp"
#include "limpid/sampler.hpp"

namespace limpid {

class Engine;  // internal

struct OpenOptions {
  // Tokens of the longest sequence; 0: the model's own, or what memory allows of it.
  int64_t n_ctx = 0;
  int64_t n_batch = 512;         // tokens of a prompt evaluated in one step
  int n_threads = 0;             // 0: as many as cores this process may use
  std::string executor = "cpu";  // "cpu" or "reference"
  std::string isa{};  // "": the best that this CPU has (or LIMPID_ISA of the environment)
  std::string cache_type_k = "f16";  // "f16" or "f32"
  std::string cache_type_v = "f16";
  std::string tokenizer_path{};  // another tokenizer than the model's own: a file or folder of one
  std::string chat_template{};   // Jinja source in place of the model's own
  // "q4_k_m", …: what limpid quantize would make of the model, made while it is opened and kept in
  // ${XDG_CACHE_HOME:-~/.cache}/limpid/quantized; "": as it is.
  std::string quantize{};
  // Hyper-parameters for a bare state dictionary (of nanoGPT, minGPT, …) that lacks them: a JSON
  // file, or JSON itself.
  std::string config{};
  // In place of the model's own: "none", "linear:FACTOR" or
  // "llama3:FACTOR,LOW,HIGH,ORIGINAL_CONTEXT".
  std::string rope_scaling{};
  bool check_memory = true;  // throw ResourceError before loading what cannot fit
  // Called now and then while loading, with bytes done and in all; returning false cancels
  // (ResourceError).
  std::function<bool(uint64_t done, uint64_t total)> progress{};
};

// A handle: copies share the model. Safe to use from many threads; steps take turns.
class LanguageModel {
 public:
  // Throws FormatError, UnsupportedError, ArgumentError, ResourceError.
  static LanguageModel open(const std::string& path, const OpenOptions& options = {});
  explicit LanguageModel(std::shared_ptr<Engine> engine) : engine_(std::move(engine)) {}

  int64_t n_ctx() const;       // tokens of the longest sequence
  int64_t vocab_size() const;  // token ids are in [0, vocab_size)
  bool has_tokenizer() const;
  const MemoryPlan& memory_plan() const;

  // The four below throw UnsupportedError when the checkpoint carries no tokenizer.
  // `add_special` puts BOS/EOS where the model wants them; `parse_special` reads control tokens in
  // the text as such: never set it for what a user typed.
  std::vector<TokenId> encode(std::string_view text, bool add_special = true,
                              bool parse_special = false) const;
  // The same for each text, on up to `n_threads` threads; 0: as many as cores this process may use.
  std::vector<std::vector<TokenId>> encode_batch(std::span<const std::string_view> texts,
                                                 bool add_special = true,
                                                 bool parse_special = false,
                                                 int n_threads = 0) const;
  // The bytes of the ids, exactly: not necessarily UTF-8 (a TextStream gives only whole UTF-8).
  // Throws ArgumentError for an id outside the vocabulary.
  std::string decode(std::span<const TokenId> ids, bool show_special = false) const;
  // True for tokens that end a text or a turn.
  bool is_stop(TokenId id) const;
  // What the model's publisher recommends (general.sampling.* of GGUF, generation_config.json); the
  // defaults of SamplerOptions where the model says nothing. Nobody applies them for you.
  SamplerOptions recommended_sampler() const;
  // The chat template's source; empty when the model has none.
  std::string chat_template() const;

 private:
  friend const std::shared_ptr<Engine>& engine_of(const LanguageModel& model);  // internal
  std::shared_ptr<Engine> engine_;
};

}  // namespace limpid
