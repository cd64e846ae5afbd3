#include "model/registry.h"

#include <set>

#include "base/check.h"
#include "model/llama.h"

namespace limpid {
namespace {

const LlamaVariant& find_variant(const Checkpoint& checkpoint) {
  const std::optional<std::string_view> architecture =
      checkpoint.metadata.string("general.architecture");
  if (!architecture) {
    throw FormatError(checkpoint.path, FormatError::kNoOffset, "general.architecture",
                      "is missing; the file does not say what model it holds");
  }
  const LlamaVariant* variant = find_llama_variant(*architecture);
  LIMPID_CHECK(UnsupportedError, variant != nullptr,
               "{}: architecture `{}` is not supported (known: {})", checkpoint.path, *architecture,
               llama_variant_names());
  return *variant;
}

// The tokenizer that the file carries must name as many tokens as the embedding has rows.
void check_vocabulary(const Checkpoint& checkpoint, const DecoderSpec& spec) {
  const std::vector<std::string>* tokens = checkpoint.metadata.strings("tokenizer.ggml.tokens");
  if (tokens == nullptr || static_cast<int64_t>(tokens->size()) == spec.vocab_size) return;
  throw FormatError(checkpoint.path, FormatError::kNoOffset, "tokenizer.ggml.tokens",
                    fmt::format("has {} tokens, but token_embd.weight has {} rows", tokens->size(),
                                spec.vocab_size));
}

void refuse_unknown_tensors(const Checkpoint& checkpoint, const TensorTable& table) {
  std::set<std::string_view> known(table.consumed.begin(), table.consumed.end());
  for (const TensorEntry& entry : table.entries) known.insert(entry.name);
  for (const auto& [name, tensor] : checkpoint.tensors) {
    LIMPID_CHECK(UnsupportedError, known.contains(name),
                 "{}: the tensor {} {} may change the result and Limpid does not know it",
                 checkpoint.path, name, tensor.to_string());
  }
}

Weight load_entry(const Checkpoint& checkpoint, const TensorEntry& entry, int64_t head_dim,
                  Executor& executor, std::vector<Tensor>& made) {
  const TensorView* tensor = checkpoint.find(entry.name);
  if (tensor == nullptr && !entry.required) return {};
  if (tensor == nullptr || tensor->shape != entry.shape) {
    throw FormatError(checkpoint.path, FormatError::kNoOffset, entry.name,
                      fmt::format("{}, expected {}",
                                  tensor == nullptr ? "is missing" : "is " + tensor->to_string(),
                                  entry.shape.to_string()));
  }
  Tensor storage;
  const TensorView bytes = checkpoint.read(entry.name, storage);
  if (bytes.data == storage.data()) made.push_back(std::move(storage));
  return executor.load_weight({entry.name, bytes, entry.use, entry.row_order, head_dim});
}

}  // namespace

DecoderSpec read_spec(const Checkpoint& checkpoint) {
  DecoderSpec spec = read_llama_spec(checkpoint, find_variant(checkpoint));
  check_vocabulary(checkpoint, spec);
  return spec;
}

DecoderWeights load_weights(const Checkpoint& checkpoint, const DecoderSpec& spec,
                            Executor& executor,
                            const std::function<bool(uint64_t done, uint64_t total)>& progress) {
  const TensorTable table = llama_tensor_table(spec);
  refuse_unknown_tensors(checkpoint, table);
  uint64_t total = 0;
  for (const auto& [name, tensor] : checkpoint.tensors) total += tensor.n_bytes();
  uint64_t done = 0;
  for (const TensorEntry& entry : table.entries) {
    *entry.place = load_entry(checkpoint, entry, spec.head_dim, executor, table.weights->made);
    if (const TensorView* tensor = checkpoint.find(entry.name)) done += tensor->n_bytes();
    LIMPID_CHECK(ResourceError, !progress || progress(done, total), "{}: loading was cancelled",
                 checkpoint.path);
  }
  if (spec.tied_embeddings) table.weights->output = table.weights->token_embedding;
  return std::move(*table.weights);
}

}  // namespace limpid
