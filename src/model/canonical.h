// From what a folder or file calls its keys and tensors to the one vocabulary that the model
// families read: GGUF's.
#pragma once

#include <string>

#include "checkpoint/checkpoint.h"

namespace limpid {

// Where to find what a checkpoint may lack.
struct ModelFiles {
  std::string path;  // a file, or a folder as downloaded
  // What find_tokenizer_files takes, or llama2.c's tokenizer.bin; it then stands for the model's
  // own. "": beside the weights.
  std::string tokenizer_path{};
  // Hyper-parameters for a bare state dictionary: a JSON file, or JSON itself ("{…}").
  std::string config{};
  std::string rope_scaling{};  // in place of the model's own, as parse_rope_scaling reads it
};

// The checkpoint with keys and names as GGUF has them; one that is GGUF already stays as it is. No
// tensor is copied: what has to be transposed or joined is promised (Checkpoint::made). Throws
// UnsupportedError naming the key or tensor that would change the result and that Limpid does not
// implement, FormatError for what contradicts itself.
Checkpoint to_canonical(Checkpoint checkpoint);

// Adds what the user says of a bare state dictionary: the keys of params.json to one with Meta's
// names, of config.json to one with Hugging Face's, of either kind to nanoGPT's and minGPT's.
// Throws ArgumentError for a checkpoint that carries its own, FormatError, ResourceError.
void add_configuration(Checkpoint& checkpoint, const std::string& config);

// open_checkpoint and to_canonical, with all that `files` says in place of the checkpoint's own.
// Throws as these do, and ArgumentError for what cannot stand in its place.
Checkpoint open_model_files(const ModelFiles& files);

}  // namespace limpid
