// Hugging Face's configuration and names -> Limpid's. docs/formats/hugging_face.md
#pragma once

#include <functional>
#include <string_view>

#include "checkpoint/checkpoint.h"
#include "layouts/name_table.h"
#include "layouts/spec_reader.h"

namespace limpid {

// What is left to do once the tensors have their names; may throw.
using FinishCheckpoint = std::function<void(Checkpoint& canonical)>;

// One architecture of `transformers`.
struct HuggingFaceFamily {
  std::string_view class_name;    // of config.json's `architectures`
  std::string_view model_type;    // of the same file
  std::string_view architecture;  // GGUF's name
  const NameTable* names;
  // Reads every key of `config` that the architecture knows, and sets those that GGUF has for it in
  // `canonical`. What nobody read is refused by name afterwards.
  FinishCheckpoint (*read_config)(SpecReader& config, const HuggingFaceFamily& family,
                                  Metadata& canonical);
  RowOrder row_order = RowOrder::kHalfSplit;  // of its folders
  std::string_view bias_key = {};  // one for all biases; empty: attention_bias and mlp_bias
};

// What config.json alone gives: all of its keys are read, or refused by name.
struct HuggingFaceKeys {
  const HuggingFaceFamily* family = nullptr;
  Metadata canonical;
  FinishCheckpoint finish;
};
HuggingFaceKeys read_hugging_face_config(const Checkpoint& given);

// The checkpoint in GGUF's vocabulary (layouts/canonical.h). Throws UnsupportedError that names the
// class, the key or the tensor that Limpid does not do, FormatError for what contradicts itself.
Checkpoint canonical_from_hugging_face(const Checkpoint& given);

// The names of a model of that GGUF architecture in `transformers`, for whoever writes that layout;
// nullptr when it has none.
const HuggingFaceFamily* find_hugging_face_family(std::string_view architecture);

}  // namespace limpid
