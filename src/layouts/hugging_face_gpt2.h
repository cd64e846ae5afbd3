// Reads config.json of GPT2LMHeadModel.
#pragma once

#include "checkpoint/metadata.h"
#include "layouts/model_classes.h"
#include "layouts/spec_reader.h"

namespace limpid {

// Reads the keys of read_gpt2_config with the defaults of transformers: gelu_new, tied embeddings,
// and a feed-forward width of four times d_model. The tensor names are in kGpt2Conv1dNames.
OptionalParts read_hugging_face_gpt2(SpecReader& config, const ModelClass& model_class,
                                     Metadata& canonical);

}  // namespace limpid
