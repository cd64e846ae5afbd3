// The places of a forward pass that have a name: where probes look, and where interventions replace
// what they find.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace limpid {

// In the order of the computation. T is the number of tokens of a step. Those from kAttnNorm to
// kFfnResidual are in each block; the others are outside the blocks (layer -1).
enum class Place : uint8_t {
  kEmbedding,     // [T, d_model]: of token and position, before the first block
  kAttnNorm,      // [T, d_model]: the input of Q, K and V
  kQuery,         // [T, n_heads * head_dim], rotated where the model rotates
  kKey,           // [T, n_kv_heads * head_dim], likewise
  kValue,         // [T, n_kv_heads * head_dim]
  kAttnHeads,     // [T, n_heads * head_dim]: what the heads read, before the output projection
  kAttnOutput,    // [T, d_model]: what attention adds to the residual stream
  kAttnResidual,  // [T, d_model]: the residual stream after attention
  kFfnNorm,       // [T, d_model]: the input of the MLP
  kFfnHidden,     // [T, d_ff]: the neurons of the MLP
  kFfnOutput,     // [T, d_model]: what the MLP adds to the residual stream
  kFfnResidual,   // [T, d_model]: the residual stream after the block
  kOutputNorm,    // [n_outputs, d_model]
  kLogits,        // [n_outputs, vocab_size]
};
inline constexpr int kNumPlaces = static_cast<int>(Place::kLogits) + 1;

// "embedding", "attn_heads", …: the names in traces, reports and messages.
std::string_view place_name(Place place);
std::optional<Place> place_from_name(std::string_view name);

// Some of the places.
class PlaceSet {
 public:
  constexpr PlaceSet() = default;
  template <typename... Places>
  constexpr explicit PlaceSet(Places... places) : bits_((0U | ... | bit(places))) {}
  constexpr bool contains(Place place) const { return (bits_ & bit(place)) != 0; }

 private:
  static constexpr uint32_t bit(Place place) { return 1U << static_cast<unsigned>(place); }
  uint32_t bits_ = 0;
};

}  // namespace limpid
