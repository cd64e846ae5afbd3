// A checkpoint is names -> tensor views, and metadata. Readers know bytes, not models.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/mapped_file.h"
#include "checkpoint/metadata.h"
#include "tensor/row_order.h"
#include "tensor/tensor.h"

namespace limpid {

// Whose names and keys a checkpoint speaks. model/canonical translates all of them into GGUF's.
enum class Naming : uint8_t {
  kGguf,         // blk.0.attn_q.weight, llama.block_count: Limpid's own vocabulary
  kHuggingFace,  // model.layers.0.self_attn.q_proj.weight; keys of config.json below `config.`
  kMeta,         // layers.0.attention.wq.weight; keys of params.json below `params.`
  kStateDict,    // a bare state dictionary: its names tell whose it is
};

// A tensor that no single range of a file holds: shards to be joined, a transpose, strides.
struct DerivedTensor {
  std::string how;               // for `inspect`: "rows of 2 files joined", "transposed"
  std::function<Tensor()> make;  // of the dtype and shape that `tensors` states
  // Where it is f32, f16 or bf16 and its rows are those of several views, one view after another:
  // these, for whoever can do without the copy.
  std::vector<TensorView> row_parts{};
};

struct Checkpoint {
  std::string path;    // what the user named
  std::string format;  // "gguf v3", "llama2c", …
  Naming naming = Naming::kGguf;
  // Of the rows of Q and K; nothing: as GGUF has it for the architecture.
  std::optional<RowOrder> row_order{};
  Metadata metadata;
  // Views into `files`; those of `made` have no data.
  std::map<std::string, TensorView, std::less<>> tensors;
  std::vector<std::string> tensor_order;                      // names in file order
  std::map<std::string, DerivedTensor, std::less<>> derived;  // by name
  std::vector<std::string> unused_tensors;  // of the file, in its order; the model ignores them

  std::vector<std::shared_ptr<const MappedFile>> files;  // keep the views alive
  std::vector<std::shared_ptr<Tensor>> owned;  // so do these, of checkpoints built in memory
  // Files beside the weights, by their names: tokenizer.json, tokenizer.model, merges.txt, …
  std::map<std::string, std::shared_ptr<const MappedFile>, std::less<>> attachments;

  // Null when there is none of that name.
  const TensorView* find(std::string_view name) const {
    const auto it = tensors.find(name);
    return it == tensors.end() ? nullptr : &it->second;
  }

  // The tensor with its bytes: the view into its file, or, if it has to be made, into `storage`,
  // which then owns it. Throws ArgumentError for a name that is not there.
  TensorView read(std::string_view name, Tensor& storage) const;
};

// Throws ResourceError when the file on disk has become smaller than its map: to read what is gone
// would be fatal.
void check_not_shrunk(const MappedFile& file);

// Pages of the checkpoint's files that have been read, and are not needed for now, are given back.
// `part` may lie elsewhere, in memory that a test or a reader made: that is left alone.
void leave_file(const Checkpoint& checkpoint, std::span<const std::byte> part);

// Looks at what is at `path` and opens it with the reader that knows it: a Hugging Face folder,
// safetensors (with a config.json beside it: that folder), PyTorch .pth and .pt, GGUF (also split
// files) or llama2.c `.bin`. `tokenizer_path` names llama2.c's separate tokenizer file; empty:
// `tokenizer.bin` or `tok512.bin` beside the model if one is there. Throws FormatError,
// UnsupportedError, ResourceError.
Checkpoint open_checkpoint(const std::string& path, const std::string& tokenizer_path = "");

}  // namespace limpid
