#include "executor/place.h"

#include <algorithm>
#include <array>

namespace limpid {
namespace {

constexpr std::array<std::string_view, kNumPlaces> kNames = {
    "embedding",  "attn_norm",    "query",         "key",      "value",
    "attn_heads", "attn_output",  "attn_residual", "ffn_norm", "ffn_hidden",
    "ffn_output", "ffn_residual", "output_norm",   "logits"};

}  // namespace

std::string_view place_name(Place place) { return kNames[static_cast<size_t>(place)]; }

std::optional<Place> place_from_name(std::string_view name) {
  const auto found = std::ranges::find(kNames, name);
  if (found == kNames.end()) return std::nullopt;
  return static_cast<Place>(found - kNames.begin());
}

}  // namespace limpid
