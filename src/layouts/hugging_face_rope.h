// The rotary embedding as config.json describes it.
#pragma once

#include <cstdint>

#include "layouts/rope_scaling.h"
#include "layouts/spec_reader.h"

namespace limpid {

struct HuggingFaceRope {
  int64_t n_rot = 0;
  double base = 10000;
  RopeScaling scaling;
};

// rope_theta, partial_rotary_factor and rope_scaling (`rope_type`, or the older `type`), or the
// block `rope_parameters` of transformers 5, which holds them all. Throws UnsupportedError for a
// type other than default, linear and llama3.
HuggingFaceRope read_hugging_face_rope(SpecReader& config, int64_t head_dim, int64_t n_ctx);

}  // namespace limpid
