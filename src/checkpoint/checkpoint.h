// A checkpoint is names -> tensor views, and metadata. Readers know bytes, not models.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/mapped_file.h"
#include "checkpoint/metadata.h"
#include "tensor/tensor.h"

namespace limpid {

struct Checkpoint {
  std::string path;    // what the user named
  std::string format;  // "gguf v3", "llama2c", …
  Metadata metadata;
  std::map<std::string, TensorView, std::less<>>
      tensors;                            // names as in the file; views into `files` or `owned`
  std::vector<std::string> tensor_order;  // names in file order

  std::vector<std::shared_ptr<const MappedFile>> files;  // keep the views alive
  std::vector<Tensor> owned;

  const TensorView* find(std::string_view name) const {
    const auto it = tensors.find(name);
    return it == tensors.end() ? nullptr : &it->second;
  }
};

// Throws ResourceError when the file on disk has become smaller than its map: to read what is gone
// would be fatal.
void check_not_shrunk(const MappedFile& file);

// Looks at what is at `path` and opens it with the reader that knows it: GGUF (also split files) or
// llama2.c `.bin`. `tokenizer_path` names llama2.c's separate tokenizer file; empty:
// `tokenizer.bin` or `tok512.bin` beside the model if one is there. Throws FormatError,
// UnsupportedError, ResourceError.
Checkpoint open_checkpoint(const std::string& path, const std::string& tokenizer_path = "");

}  // namespace limpid
