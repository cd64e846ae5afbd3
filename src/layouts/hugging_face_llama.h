// config.json and tensor names of Llama and its relatives, as `transformers` has them.
#pragma once

#include "layouts/hugging_face.h"

namespace limpid {

extern const NameTable kHuggingFaceLlamaNames;

// LlamaForCausalLM (also SmolLM), MistralForCausalLM, Qwen2ForCausalLM, Qwen3ForCausalLM.
FinishCheckpoint read_hugging_face_llama(SpecReader& config, const HuggingFaceFamily& family,
                                         Metadata& canonical);

}  // namespace limpid
