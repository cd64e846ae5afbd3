// Rotary frequencies, and how models stretch them for contexts longer than they were trained on.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/checkpoint.h"

namespace limpid {

enum class RopeScalingKind : uint8_t {
  kNone,
  kLinear,  // every position divided by a factor (Chen et al. 2023, arXiv:2306.15595)
  kLlama3,  // only the slow rotations (Grattafiori et al. 2024, arXiv:2407.21783, and Meta's code)
};

struct RopeScaling {
  RopeScalingKind kind = RopeScalingKind::kNone;
  double factor = 1.0;
  // kLlama3 only. Rotations that turn more than high_freq_factor times within original_context
  // stay, those that turn less than low_freq_factor times are slowed down by the factor.
  double low_freq_factor = 1.0;
  double high_freq_factor = 4.0;
  int64_t original_context = 8192;
};

// "none", "linear", "llama3".
std::string_view rope_scaling_name(RopeScalingKind kind);

// Su et al. 2021, eq. 15, in radians per position: base^(-2i / n_rot), [n_rot / 2].
std::vector<double> rope_frequencies(double base, int64_t n_rot);

// What each frequency is divided by, rounded to f32 as rope_freqs.weight of a GGUF file holds it,
// so that one model gives the same bits from either. [frequencies.size()]
std::vector<float> rope_divisors(const RopeScaling& scaling,
                                 const std::vector<double>& frequencies);

// The scaling of a released Llama that gives exactly these divisors; nothing if none does.
std::optional<RopeScaling> find_rope_scaling(const std::vector<float>& divisors,
                                             const std::vector<double>& frequencies);

// "none", "linear:FACTOR", "llama3:FACTOR,LOW,HIGH,ORIGINAL_CONTEXT". Throws ArgumentError saying
// what is expected.
RopeScaling parse_rope_scaling(std::string_view text);

// Writes `scaling` as the keys <architecture>.rope.scaling.{type, factor, low_freq_factor,
// high_freq_factor, original_context_length}, in place of what stands there, and
// rope.scaling.overridden, by which a rope_freqs.weight is not read. The tensors stay as they are.
// Of a canonical checkpoint. Throws UnsupportedError for a model without rotary positions.
void override_rope_scaling(Checkpoint& checkpoint, const RopeScaling& scaling);

// The keys alone, for whoever translates another layout.
void set_rope_scaling_keys(Metadata& metadata, std::string_view architecture,
                           const RopeScaling& scaling);

}  // namespace limpid
