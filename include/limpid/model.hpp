// A language model: an opened checkpoint.
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

// How a model is opened. The defaults suit most uses.
struct OpenOptions {
  // Tokens of the longest sequence. 0: the model's own context, or as much of it as memory allows.
  int64_t n_ctx = 0;
  int64_t n_batch = 512;  // tokens of a prompt evaluated in one step
  int n_threads = 0;      // 0: as many as cores this process may use
  // "cpu", "opencl" or "cuda", "opencl:1" for the second device of OpenCL; "reference" is slow and
  // defines every op.
  std::string device = "cpu";
  // How many layers, from the first on, lie on `device`; the others lie on `split`. Any number
  // above that of the layers means all. If `device` is "cpu", a number above 0 takes the first GPU.
  // kLayersThatFit: all, or as many as the device's memory holds.
  static constexpr int64_t kLayersThatFit = -1;
  int64_t gpu_layers = kLayersThatFit;
  // The device of the layers that `device` does not hold: "cpu", or another GPU.
  std::string split = "cpu";
  // The type of the numbers that matrix products multiply: "f32", or a faster one, to which
  // activations are rounded. "f16" is for a GPU's tensor cores, and rounds weights too. "bf16" is
  // for the processor and weights of bf16, twice as fast with AVX512_BF16. Within each type, a
  // token's logits have the same bits in any batch and any chunking.
  std::string products = "f32";
  std::string isa{};  // "": the best of this CPU, or the environment variable LIMPID_ISA
  std::string cache_type_k = "f16";  // "f16" or "f32"
  std::string cache_type_v = "f16";
  std::string tokenizer_path{};  // a tokenizer's file or folder, instead of the model's own
  std::string chat_template{};   // Jinja source instead of the model's own
  // "q4_k_m", …: quantises the model as `limpid quantize` does while it is opened, and keeps the
  // result in ${XDG_CACHE_HOME:-~/.cache}/limpid/quantized. "": uses the model as it is.
  std::string quantize{};
  // Hyper-parameters for a bare state dictionary (of nanoGPT, minGPT, …) without them: a JSON file,
  // or JSON itself.
  std::string config{};
  // Instead of the model's own scaling: "none", "linear:FACTOR" or
  // "llama3:FACTOR,LOW,HIGH,ORIGINAL_CONTEXT".
  std::string rope_scaling{};
  // Low-rank adapters of the model: folders in PEFT's layout, each optionally followed by "=SCALE",
  // the factor of its effect. The name of an existing folder is never taken apart, even if it is
  // "rate=0.5".
  std::vector<std::string> lora{};
  bool check_memory = true;  // throw ResourceError before loading a model that cannot fit
  // Called with the plan before anything is loaded.
  std::function<void(const MemoryPlan& plan)> on_plan{};
  // Called from time to time while loading, with the bytes done and the total. Returning false
  // cancels (ResourceError).
  std::function<bool(uint64_t done, uint64_t total)> progress{};
};

// A handle: copies share the model. Safe to use from many threads; steps run one at a time. A
// handle that was moved from may only be assigned to or destroyed.
class LanguageModel {
 public:
  // Throws FormatError, UnsupportedError, ArgumentError, ResourceError.
  static LanguageModel open(const std::string& path, const OpenOptions& options = {});
  explicit LanguageModel(std::shared_ptr<Engine> engine) : engine_(std::move(engine)) {}

  int64_t n_ctx() const;       // tokens of the longest sequence
  int64_t vocab_size() const;  // token ids are in [0, vocab_size)
  bool has_tokenizer() const;
  const MemoryPlan& memory_plan() const;

  // encode, encode_batch, decode and is_stop throw UnsupportedError when the checkpoint has no
  // tokenizer. `add_special` adds BOS and EOS where the model wants them. `parse_special` reads
  // control tokens in the text as such: never set it for text that a user typed. Bytes that the
  // vocabulary cannot express are lost, such as some invalid UTF-8.
  std::vector<TokenId> encode(std::string_view text, bool add_special = true,
                              bool parse_special = false) const;
  // As encode, for each text, on up to `n_threads` threads (0: as many as cores this process may
  // use).
  std::vector<std::vector<TokenId>> encode_batch(std::span<const std::string_view> texts,
                                                 bool add_special = true,
                                                 bool parse_special = false,
                                                 int n_threads = 0) const;
  // The exact bytes of the ids, not necessarily UTF-8 (a TextStream gives only whole UTF-8); but
  // without a space at their start where encode() puts one before each text, as SentencePiece does.
  // Ids below vocab_size() that the tokenizer lacks (a padded embedding has some) have no bytes.
  // Throws ArgumentError for an id outside the vocabulary.
  std::string decode(std::span<const TokenId> ids, bool show_special = false) const;
  // True for tokens that end a text or a turn.
  bool is_stop(TokenId id) const;
  // The options that the model's publisher recommends (general.sampling.* of GGUF,
  // generation_config.json), and the defaults of SamplerOptions elsewhere. Limpid does not apply
  // them unless you pass them on.
  SamplerOptions recommended_sampler() const;
  // The chat template's source; empty when the model has none.
  std::string chat_template() const;

 private:
  friend const std::shared_ptr<Engine>& engine_of(const LanguageModel& model);  // internal
  std::shared_ptr<Engine> engine_;
};

}  // namespace limpid
