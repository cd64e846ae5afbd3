// Translates Hugging Face's configuration and tensor names into the canonical ones. The format is
// described in docs/formats/hugging_face.md.
#pragma once

#include "checkpoint/checkpoint.h"
#include "layouts/model_classes.h"
#include "layouts/name_table.h"

namespace limpid {

// The result of reading config.json alone. Every key of the file is either read or refused by name.
struct HuggingFaceConfig {
  const ModelClass* model_class = nullptr;
  Metadata canonical;   // general.architecture and the keys below it
  OptionalParts parts;  // the optional tensors that the model has
};
HuggingFaceConfig read_hugging_face_config(const Checkpoint& given);

// Checks the tensors of `canonical` against the configuration. A tied output matrix is moved to the
// unused tensors. Every optional tensor must be present exactly when the configuration says so;
// otherwise throws FormatError.
void apply_parts(const HuggingFaceConfig& config, Checkpoint& canonical);

// Returns the checkpoint in GGUF's vocabulary (layouts/canonical.h). Throws UnsupportedError naming
// a class, key or tensor that Limpid does not implement, and FormatError for contradictory values.
Checkpoint canonical_from_hugging_face(const Checkpoint& given);

// Reads the file generation_config.json among the attachments of a folder in another layout, if it
// is there: the defaults of sampling into GGUF's keys general.sampling.*, the tokens that end an
// answer into kStopTokenIdsKey. Throws FormatError.
void read_generation_config(const Checkpoint& given, Metadata& canonical);

// The table of tensor names that `transformers` uses for the class.
const NameTable& hugging_face_names(const ModelClass& model_class);

// The canonical key for further tokens that end an answer, in addition to the tokenizer's own: an
// array of integers.
constexpr const char* kStopTokenIdsKey = "tokenizer.stop_token_ids";

// The canonical key for `initializer_range` of config.json: the deviation of the weights with which
// a new model begins to learn. The value is the file's, whatever its type, and may be absent.
constexpr const char* kInitializerRangeKey = "training.initializer_range";

}  // namespace limpid
