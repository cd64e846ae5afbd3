// A checkpoint is a map from names to tensor views, plus metadata. Every file format is read into
// this one structure. Readers know bytes and names, not models: layouts/ gives the names a meaning,
// and model/ builds the transformer.
//
// Tensor data is not copied. A view points into the memory map of its file, which `files` keeps
// alive. The few tensors that no single range of a file holds are described by a DerivedTensor and
// are built when they are first read.
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

// The vocabulary of a checkpoint's tensor names and metadata keys. layouts/ translates each of them
// into GGUF's.
enum class Naming : uint8_t {
  kGguf,         // blk.0.attn_q.weight, llama.block_count: Limpid's own vocabulary
  kHuggingFace,  // model.layers.0.self_attn.q_proj.weight; keys of config.json below `config.`
  kMeta,         // layers.0.attention.wq.weight; keys of params.json below `params.`
  kStateDict,    // a bare state dictionary: its tensor names tell which of the others it uses
};

// A tensor that no single range of a file holds: shards that must be joined, a transposed matrix, a
// tensor with strides, or data at an address that its type does not allow.
struct DerivedTensor {
  std::string how;               // for `inspect`: "rows of 2 files joined", "transposed"
  std::function<Tensor()> make;  // of the dtype and shape that `tensors` states
  // The views whose rows, in this order, are the rows of the tensor. A caller that can work with
  // these parts does not need the copy. Empty unless the dtype is f32, f16 or bf16.
  std::vector<TensorView> row_parts{};
};

// One model as it was found on disk, whatever its format.
struct Checkpoint {
  std::string path;    // what the user named
  std::string format;  // "gguf v3", "llama2c", …
  Naming naming = Naming::kGguf;
  // The order of the rows of Q and K. Without a value: the order of GGUF for the architecture.
  std::optional<RowOrder> row_order{};
  Metadata metadata;
  // Views into `files`. A tensor that is also in `derived` has a null data pointer here.
  std::map<std::string, TensorView, std::less<>> tensors;
  std::vector<std::string> tensor_order;                      // names in file order
  std::map<std::string, DerivedTensor, std::less<>> derived;  // by name
  std::vector<std::string> unused_tensors;  // names in file order; the model ignores them

  std::vector<std::shared_ptr<const MappedFile>> files;  // keep the views alive
  std::vector<std::shared_ptr<Tensor>> owned;            // the same for checkpoints built in memory
  // Other files of the model, by file name: tokenizer.json, tokenizer.model, merges.txt, …
  NamedFiles attachments;

  // What the user's hyper-parameters are called in messages: their file, if they were in one.
  std::string given_config = "OpenOptions::config";

  // Returns null for an unknown name.
  const TensorView* find(std::string_view name) const {
    const auto it = tensors.find(name);
    return it == tensors.end() ? nullptr : &it->second;
  }

  // Adds a tensor, or replaces the one of that name. The checkpoint owns it from now on.
  void add(const std::string& name, Tensor tensor);
  // Adds a view into `files` under a new name. Some formats do not align their data: a tensor at an
  // address that its type, which is not quantised, does not allow is copied when it is read.
  void add_view(const std::string& name, const TensorView& view);
  // Adds a derived tensor, or replaces the one of that name.
  void add_derived(const std::string& name, DType dtype, const Shape& shape, DerivedTensor made);
  // Adds the tensor `name` of `other` as `ours`, also one that is derived. The caller keeps the
  // files of `other`.
  void add_from(const Checkpoint& other, const std::string& name, const std::string& ours);
  // Removes a tensor; does nothing if there is none of that name.
  void erase(const std::string& name);

  // Returns the tensor with its bytes. The view points into the tensor's file or, for a derived
  // tensor, into `storage`, which then owns the bytes. Throws ArgumentError for an unknown name.
  TensorView read(std::string_view name, Tensor& storage) const;
};

// Throws ResourceError when the file on disk has become smaller than its map. Reading a mapped page
// that the file no longer has would end the process with SIGBUS.
void check_not_shrunk(const MappedFile& file);

// Tells the system that `part` of a mapped file has been read and is not needed for now, so its
// pages may be reused. A `part` outside the checkpoint's files, in memory that a test or a reader
// allocated, is left alone.
void leave_file(const Checkpoint& checkpoint, std::span<const std::byte> part);

// Opens the file or folder at `path` with the reader for its format: a Hugging Face folder,
// safetensors (with a config.json beside it, that folder is opened), PyTorch .pth and .pt, GGUF
// (also split files) or llama2.c `.bin`. The content of a file decides, not its name.
// `tokenizer_path` names llama2.c's separate tokenizer file; when it is empty,
// `tok<vocab_size>.bin` or `tokenizer.bin` beside the model is used if there is one. Throws
// FormatError, UnsupportedError, ResourceError.
Checkpoint open_checkpoint(const std::string& path, const std::string& tokenizer_path = "");

}  // namespace limpid
