// The Llama family in GGUF's names: Llama 2 / 3 / 3.x, Mistral, SmolLM (architecture `llama`),
// Qwen2, Qwen3.
#pragma once

#include "model/family.h"

namespace limpid {

extern const Family kLlamaFamily;

}  // namespace limpid
