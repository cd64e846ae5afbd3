// Rotary frequencies, and how models scale them for contexts longer than those of their training.
//
// RoPE (Su et al. 2021, arXiv:2104.09864) rotates pair i of a head's elements by the angle position
// * f_i, with f_i = base^(-2i / n_rot). Low i turn fast and encode nearby distances; high i turn
// slowly and encode far ones. Beyond the trained context angles occur that the model has never
// seen. A scaling divides f_i by a divisor d_i >= 1, so that the new positions map to angles within
// the trained range:
//   linear    d_i = factor for all i: position 8000 with factor 4 turns like position 2000 did
//   llama3    d_i = 1 where the pair turns more than high_freq_factor times within the original
//             context (it has seen all angles already), d_i = factor where it turns less than
//             low_freq_factor times, and a smooth transition in between
// With factor 8, base 500000, n_rot 128 and an original context of 8192, pair 0 turns 1304 times (d
// = 1) and pair 63 turns 0.003 times (d = 8).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "checkpoint/checkpoint.h"

namespace limpid {

enum class RopeScalingKind : uint8_t {
  kNone,
  kLinear,  // every position divided by a factor (Chen et al. 2023, arXiv:2306.15595)
  kLlama3,  // only the slow pairs (Grattafiori et al. 2024, arXiv:2407.21783, and Meta's code)
};

// One of the rules above, with its parameters.
struct RopeScaling {
  RopeScalingKind kind = RopeScalingKind::kNone;
  double factor = 1.0;
  // kLlama3 only. Pairs that turn more than high_freq_factor times within original_context keep
  // their frequency. Pairs that turn less than low_freq_factor times are slowed by `factor`.
  double low_freq_factor = 1.0;
  double high_freq_factor = 4.0;
  int64_t original_context = 8192;
};

// Returns "none", "linear" or "llama3".
std::string_view rope_scaling_name(RopeScalingKind kind);

// Su et al. 2021, eq. 15: base^(-2i / n_rot), in radians per position. Shape [n_rot / 2].
std::vector<double> rope_frequencies(double base, int64_t n_rot);

// Returns the divisor of each frequency, rounded to f32 like rope_freqs.weight in a GGUF file. A
// model therefore computes the same bits whether its divisors are computed or stored. Shape
// [frequencies.size()].
std::vector<float> rope_divisors(const RopeScaling& scaling,
                                 const std::vector<double>& frequencies);

// Returns the scaling of a released Llama model whose divisors are exactly these, or nothing.
std::optional<RopeScaling> find_rope_scaling(const std::vector<float>& divisors,
                                             const std::vector<double>& frequencies);

// Parses "none", "linear:FACTOR" or "llama3:FACTOR,LOW,HIGH,ORIGINAL_CONTEXT". Throws ArgumentError
// naming the expected form.
RopeScaling parse_rope_scaling(std::string_view text);

// Replaces the scaling of a canonical checkpoint. Sets the keys <architecture>.rope.scaling.{type,
// factor, low_freq_factor, high_freq_factor, original_context_length}, and rope.scaling.overridden,
// which disables the tensor rope_freqs.weight. The tensors do not change. Throws UnsupportedError
// for a model without rotary positions.
void override_rope_scaling(Checkpoint& checkpoint, const RopeScaling& scaling);

// Sets only the keys of `scaling`. Readers of other layouts use this function.
void set_rope_scaling_keys(Metadata& metadata, std::string_view architecture,
                           const RopeScaling& scaling);

}  // namespace limpid
