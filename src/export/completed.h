// Adds tensors to a canonical checkpoint that other programs require.
//
// Example: Limpid runs a nanoGPT without biases as it is. OpenAI's GPT-2 format has no way to say
// "no biases", so an exported file contains biases of zero.
#pragma once

#include "checkpoint/checkpoint.h"
#include "layouts/model_classes.h"

namespace limpid {

// Completes a checkpoint for every layout. A rotary scaling given by the user becomes the model's
// own, and a rope_freqs.weight that it replaces is removed. A GPT-2 with separate Q, K and V gets
// them as the rows of attn_qkv, and one without biases gets biases of zero, which do not change the
// result: other programs do not support such models. One with the norms of microgpt stays as it is.
Checkpoint completed(Checkpoint canonical);

// For layouts without tables of rotary factors: replaces a rope_freqs.weight by the scaling rule of
// a released Llama, if that rule yields exactly these factors.
Checkpoint with_named_scaling(Checkpoint canonical);

// Completes a checkpoint for a class of transformers. If the class has a group of biases only
// together, missing ones become zeros. Throws UnsupportedError naming a tensor that the class does
// not have.
Checkpoint completed_for_class(Checkpoint canonical, const ModelClass& model_class);

}  // namespace limpid
