// config.json and tensor names of Llama and its relatives, as `transformers` has them.
#pragma once

#include "checkpoint/metadata.h"
#include "layouts/model_classes.h"
#include "layouts/name_table.h"
#include "layouts/spec_reader.h"

namespace limpid {

extern const NameTable kHuggingFaceLlamaNames;

// Reads every key of config.json that such a model has, and sets those that GGUF has for it in
// `canonical`. A key that nobody read is refused by name afterwards.
OptionalParts read_hugging_face_llama(SpecReader& config, const ModelClass& model_class,
                                      Metadata& canonical);

}  // namespace limpid
