// Opens a model's files as one canonical checkpoint. The engine and the command line both use it.
#pragma once

#include <string>

#include "checkpoint/checkpoint.h"

namespace limpid {

// The model's path, and the sources of what its checkpoint may lack.
struct ModelFiles {
  std::string path;  // a file, or a folder as downloaded
  // A path for find_tokenizer_files, or llama2.c's tokenizer.bin. It replaces the model's own
  // tokenizer. "": use the files beside the weights.
  std::string tokenizer_path{};
  // Hyper-parameters for a bare state dictionary: a JSON file, or JSON itself ("{…}").
  std::string config{};
  std::string rope_scaling{};  // replaces the model's own; see parse_rope_scaling
};

// Calls open_checkpoint and to_canonical, then applies the replacements in `files`. Throws the
// errors of both functions, and ArgumentError for a replacement that cannot be applied.
Checkpoint open_model_files(const ModelFiles& files);

}  // namespace limpid
