// The tokens of one step of training.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace limpid {

// Whole sequences, one after another ("ragged"): no padding, and no sequence attends to another.
struct Batch {
  std::vector<int32_t> token_ids;  // [n_tokens]
  std::vector<int32_t> targets;    // [n_tokens], the token that follows; kNoTarget: not learned
  std::vector<int64_t> lengths;    // [n_sequences], each > 0; their sum is n_tokens
  int64_t first_window = 0;        // its number among those drawn in the run: the key of dropout

  static constexpr int32_t kNoTarget = -1;
  int64_t n_tokens() const { return static_cast<int64_t>(token_ids.size()); }
  int64_t n_targets() const { return n_tokens() - std::ranges::count(targets, kNoTarget); }
};

}  // namespace limpid
