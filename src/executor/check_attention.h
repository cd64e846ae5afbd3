// What every executor with a KV cache in blocks checks before it attends.
#pragma once

#include "executor/executor.h"

namespace limpid {

// Throws ShapeError unless q [n_tokens, n_heads * head_dim], k and v [n_tokens, n_kv_heads *
// head_dim] fit the step, the cache has the layer, and each token's position has a block.
void check_attention(const StepInputs& inputs, const Activation& q, const Activation& k,
                     const Activation& v, const KvLayout& layout, int64_t layer,
                     const AttentionShape& shape);

}  // namespace limpid
