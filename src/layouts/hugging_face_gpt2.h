// config.json of GPT2LMHeadModel, as `transformers` has it.
#pragma once

#include "checkpoint/metadata.h"
#include "layouts/model_classes.h"
#include "layouts/spec_reader.h"

namespace limpid {

// Keys as read_gpt2_config has them, with transformers' defaults: gelu_new, tied embeddings, a
// feed-forward of four times the width. The tensors' names are kGpt2Conv1dNames.
OptionalParts read_hugging_face_gpt2(SpecReader& config, const ModelClass& model_class,
                                     Metadata& canonical);

}  // namespace limpid
