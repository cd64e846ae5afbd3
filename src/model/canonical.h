// From what a folder or file calls its keys and tensors to the one vocabulary that the model
// families read: GGUF's.
#pragma once

#include <string>

#include "checkpoint/checkpoint.h"

namespace limpid {

// Where to find what a checkpoint may lack.
struct ModelFiles {
  std::string path;  // a file, or a folder as downloaded
  // llama2.c's tokenizer.bin, or for any model what find_tokenizer_files takes; it then stands for
  // the model's own. "": beside the weights.
  std::string tokenizer_path;
};

// The checkpoint with keys and names as GGUF has them; one that is GGUF already stays as it is. No
// tensor is copied: what has to be transposed or joined is promised (Checkpoint::made). Throws
// UnsupportedError naming the key or tensor that would change the result and that Limpid does not
// implement, FormatError for what contradicts itself.
Checkpoint to_canonical(Checkpoint checkpoint);

// open_checkpoint, then to_canonical.
Checkpoint open_model_files(const ModelFiles& files);

}  // namespace limpid
