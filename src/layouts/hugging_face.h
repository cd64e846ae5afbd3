// Hugging Face's configuration and names -> Limpid's. docs/formats/hugging_face.md
#pragma once

#include "checkpoint/checkpoint.h"
#include "layouts/model_classes.h"
#include "layouts/name_table.h"

namespace limpid {

// What config.json alone gives: all of its keys are read, or refused by name.
struct HuggingFaceConfig {
  const ModelClass* model_class = nullptr;
  Metadata canonical;   // general.architecture and the keys below it
  OptionalParts parts;  // that the model has
};
HuggingFaceConfig read_hugging_face_config(const Checkpoint& given);

// Holds the tensors of `canonical` to the configuration: a tied output matrix is left unused, and a
// part is there exactly when the configuration says so. Throws FormatError.
void apply_parts(const HuggingFaceConfig& config, Checkpoint& canonical);

// The checkpoint in GGUF's vocabulary (layouts/canonical.h). Throws UnsupportedError that names the
// class, the key or the tensor that Limpid does not implement, FormatError for what contradicts
// itself.
Checkpoint canonical_from_hugging_face(const Checkpoint& given);

// The names of the class's tensors in `transformers`.
const NameTable& hugging_face_names(const ModelClass& model_class);

}  // namespace limpid
