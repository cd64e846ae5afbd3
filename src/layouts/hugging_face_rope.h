// Reads the parameters of the rotary embedding from config.json.
#pragma once

#include <cstdint>

#include "layouts/rope_scaling.h"
#include "layouts/spec_reader.h"

namespace limpid {

// The rotary part of config.json.
struct HuggingFaceRope {
  int64_t n_rot = 0;
  double base = 10000;
  RopeScaling scaling;
};

// Reads rope_theta, partial_rotary_factor and rope_scaling (`rope_type`, or the older key `type`).
// transformers 5 keeps all of them in one block, `rope_parameters`, which is read too. Throws
// UnsupportedError for a type other than default, linear and llama3.
HuggingFaceRope read_hugging_face_rope(SpecReader& config, int64_t head_dim, int64_t n_ctx);

}  // namespace limpid
