// A model's files, opened as one canonical checkpoint: what the engine and the program both use.
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

// open_checkpoint and to_canonical, with all that `files` says in place of the checkpoint's own.
// Throws as these do, and ArgumentError for what cannot stand in its place.
Checkpoint open_model_files(const ModelFiles& files);

}  // namespace limpid
