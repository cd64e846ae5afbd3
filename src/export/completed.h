// A canonical checkpoint with the tensors that other programs insist on.
#pragma once

#include "checkpoint/checkpoint.h"
#include "layouts/model_classes.h"
#include "model/decoder_spec.h"

namespace limpid {

// What every layout takes alike. A rotary scaling that the user gave is the model's own then, and a
// rope_freqs.weight that it replaces is gone. A GPT-2 whose Q, K and V lie apart gets them as the
// rows of attn_qkv, and one without biases gets zeros, which change nothing: nobody else has such a
// GPT-2.
Checkpoint completed(Checkpoint canonical);

// For layouts without tables of rotary factors: a rope_freqs.weight that holds exactly what the
// rule of a released Llama gives becomes that rule.
Checkpoint with_named_scaling(Checkpoint canonical);

// The parts that a class of transformers has: of biases that it has only together, those that are
// missing become zeros. Throws UnsupportedError naming a tensor that the class has no place for.
Checkpoint completed_for_class(Checkpoint canonical, const ModelClass& model_class);

}  // namespace limpid
