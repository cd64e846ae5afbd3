// Reads config.json and the tensor names of Llama and the architectures related to it.
#pragma once

#include "checkpoint/metadata.h"
#include "layouts/model_classes.h"
#include "layouts/name_table.h"
#include "layouts/spec_reader.h"

namespace limpid {

extern const NameTable kHuggingFaceLlamaNames;

// Reads every key of config.json that such a model can have and sets the corresponding GGUF keys in
// `canonical`. SpecReader::refuse_the_rest afterwards refuses keys that were not read.
OptionalParts read_hugging_face_llama(SpecReader& config, const ModelClass& model_class,
                                      Metadata& canonical);

}  // namespace limpid
