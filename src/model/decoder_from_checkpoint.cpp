#include "model/decoder_from_checkpoint.h"

#include <map>
#include <set>
#include <vector>

#include "base/check.h"
#include "layouts/model_classes.h"
#include "layouts/spec_reader.h"

namespace limpid {
namespace {

// Refuses GGUF files that contain something other than a model (general.type in the GGUF
// specification).
void refuse_what_is_not_a_model(const Checkpoint& checkpoint) {
  const std::string_view type = checkpoint.metadata.string("general.type").value_or("model");
  const std::string_view architecture =
      checkpoint.metadata.string("general.architecture").value_or("");
  LIMPID_CHECK(UnsupportedError, type != "adapter",
               "{} is an adapter (LoRA), not a model; name the model, or merge "
               "the adapter into it first",
               checkpoint.path);
  LIMPID_CHECK(UnsupportedError, type != "mmproj" && architecture != "clip",
               "{} is the vision part of a model (mmproj); name the file with the language model",
               checkpoint.path);
  LIMPID_CHECK(UnsupportedError, type != "imatrix",
               "{} is an importance matrix, an input of quantisation; name the model instead",
               checkpoint.path);
}

// Checks that the file's tokenizer has as many tokens as the embedding has rows.
void check_vocabulary(const Checkpoint& checkpoint, const DecoderSpec& spec) {
  const std::vector<std::string>* tokens = checkpoint.metadata.strings("tokenizer.ggml.tokens");
  if (tokens == nullptr || static_cast<int64_t>(tokens->size()) == spec.vocab_size) return;
  throw_format_error(checkpoint.path, "tokenizer.ggml.tokens",
                     "has {} tokens, but token_embd.weight has {} rows", tokens->size(),
                     spec.vocab_size);
}

// A tensor that the table does not list could be a part of the model that this version does not
// compute.
void refuse_unknown_tensors(const Checkpoint& checkpoint, const TensorTable& table) {
  std::set<std::string_view> known(table.consumed.begin(), table.consumed.end());
  for (const TensorEntry& entry : table.entries) known.insert(entry.name);
  for (const auto& [name, tensor] : checkpoint.tensors) {
    LIMPID_CHECK(UnsupportedError, known.contains(name),
                 "{}: unknown tensor {} {}, which may change the result", checkpoint.path, name,
                 tensor.to_string());
  }
}

// Returns the parts of a joined matrix, if the executor can read them in place instead of a joined
// copy.
std::vector<TensorView> row_parts_of(const Checkpoint& checkpoint, const TensorEntry& entry) {
  const auto derived = checkpoint.derived.find(entry.name);
  const bool fits = derived != checkpoint.derived.end() && entry.rows.n_rows == 0 &&
                    entry.use != WeightUse::kVector;
  return fits ? derived->second.row_parts : std::vector<TensorView>{};
}

// Provides the tensors of a checkpoint. A derived tensor is computed once, even if several entries
// use rows of it.
class TensorSource {
 public:
  TensorSource(const Checkpoint& checkpoint, std::vector<Tensor>& derived)
      : checkpoint_(checkpoint), derived_(derived) {}

  // Returns nothing for an absent optional tensor.
  std::optional<WeightSource> read(const TensorEntry& entry, int64_t head_dim) {
    std::optional<WeightSource> source = find(entry, head_dim);
    if (source && source->row_parts.empty()) source->tensor = rows_of(bytes_of(entry.name), entry);
    return source;
  }

  // The same without the data of derived tensors, which are not computed.
  std::optional<WeightSource> find(const TensorEntry& entry, int64_t head_dim) const {
    const TensorView* tensor = checkpoint_.find(entry.name);
    if (tensor == nullptr && !entry.required) return std::nullopt;
    if (tensor == nullptr || tensor->shape != entry.shape) {
      fail(entry, fmt::format("{}, expected {}; are configuration and weights of the same model?",
                              tensor == nullptr ? "is missing" : "is " + tensor->to_string(),
                              entry.shape.to_string()));
    }
    const DType dtype = tensor->dtype;
    if (!is_float(dtype) && !is_quantized(dtype)) {
      fail(entry,
           fmt::format("is {}, expected floats or a quantised type of GGUF; a model that was "
                       "quantised in another way cannot be read: take the original",
                       tensor->to_string()));
    }
    WeightSource source{entry.name, *tensor, entry.use, entry.row_order, head_dim};
    source.row_parts = row_parts_of(checkpoint_, entry);
    source.layer = entry.layer;
    if (source.row_parts.empty()) source.tensor = rows_of(*tensor, entry);
    return source;
  }

 private:
  // Returns a view of a tensor. A derived tensor is computed on the first call and kept; other
  // tensors are views of the mapped file.
  TensorView bytes_of(const std::string& name) {
    if (const auto found = views_.find(name); found != views_.end()) return found->second;
    Tensor storage;
    const TensorView view = checkpoint_.read(name, storage);
    if (storage.data() != nullptr && view.data == storage.data()) {
      derived_.push_back(std::move(storage));
      views_.emplace(name, view);
    }
    return view;
  }

  TensorView rows_of(TensorView tensor, const TensorEntry& entry) const {
    const RowRange& rows = entry.rows;
    if (rows.n_rows == 0) return tensor;
    const bool is_vector = tensor.shape.rank() == 1;
    if (is_vector && is_quantized(tensor.dtype)) {
      fail(entry, fmt::format("is {}, expected unquantised numbers", tensor.to_string()));
    }
    const uint64_t element_bytes = dtype_info(tensor.dtype).block_bytes;
    const uint64_t row_bytes = is_vector ? element_bytes : tensor.row_bytes();
    if (tensor.data != nullptr)  // else a checkpoint of shapes
      tensor.data += static_cast<uint64_t>(rows.begin) * row_bytes;
    tensor.shape = is_vector ? Shape{rows.n_rows} : Shape{rows.n_rows, tensor.shape.cols()};
    return tensor;
  }

  [[noreturn]] void fail(const TensorEntry& entry, const std::string& problem) const {
    throw_format_error(checkpoint_.path, entry.name, "{}", problem);
  }

  const Checkpoint& checkpoint_;
  std::vector<Tensor>& derived_;
  std::map<std::string, TensorView> views_;  // of computed tensors
};

}  // namespace

// The sizes and the checks are the same for all families.
DecoderSpec read_spec(const Checkpoint& checkpoint) {
  refuse_what_is_not_a_model(checkpoint);
  const ModelClass& model_class = model_class_of(checkpoint);
  DecoderSpec spec;
  spec.architecture = model_class.architecture;
  SpecReader reader(checkpoint, spec.architecture);
  spec.n_layers = reader.required_size("block_count", kMostLayers);
  spec.d_model = reader.required_size("embedding_length", kLargestSize);
  spec.d_ff = reader.required_size("feed_forward_length", kLargestSize);
  spec.n_ctx_train = reader.required_size("context_length", kLargestSize);
  spec.n_heads = reader.required_size("attention.head_count", kLargestSize);
  if (model_class.family == Family::kGpt2) {
    read_gpt2_keys(reader, spec);
  } else {
    read_llama_keys(reader, checkpoint, spec);
  }
  spec.vocab_size = reader.vocab_size();
  spec.tied_embeddings = checkpoint.find("output.weight") == nullptr;
  reader.require_plain_transformer(spec.n_ctx_train);
  check_vocabulary(checkpoint, spec);
  return spec;
}

std::vector<WeightSource> weight_sources(const Checkpoint& checkpoint, const DecoderSpec& spec) {
  const TensorTable table = tensor_table(checkpoint, spec);
  refuse_unknown_tensors(checkpoint, table);
  const TensorSource source(checkpoint, table.weights->derived);
  std::vector<WeightSource> sources;
  for (const TensorEntry& entry : table.entries) {
    if (auto found = source.find(entry, spec.head_dim)) sources.push_back(*std::move(found));
  }
  return sources;
}

DecoderWeights load_weights(const Checkpoint& checkpoint, const DecoderSpec& spec,
                            Executor& executor,
                            const std::function<bool(uint64_t done, uint64_t total)>& progress,
                            int64_t first_layer_in_file) {
  const TensorTable table = tensor_table(checkpoint, spec);
  refuse_unknown_tensors(checkpoint, table);
  TensorSource source(checkpoint, table.weights->derived);
  uint64_t total = 0;
  for (const auto& [name, tensor] : checkpoint.tensors) total += tensor.n_bytes();
  uint64_t done = 0;
  for (const TensorEntry& entry : table.entries) {
    if (std::optional<WeightSource> weight = source.read(entry, spec.head_dim)) {
      weight->stays_in_file = weight->layer >= first_layer_in_file;
      *entry.place = executor.load_weight(*weight);
      done += weight->tensor.n_bytes();
    }
    LIMPID_CHECK(ResourceError, !progress || progress(done, total), "{}: loading was cancelled",
                 checkpoint.path);
  }
  if (spec.tied_embeddings) table.weights->output = table.weights->token_embedding;
  for (const AdapterEntry& adapter : table.adapters)
    table.weights->updates[adapter.base->id].push_back(adapter.update);
  return std::move(*table.weights);
}

}  // namespace limpid
