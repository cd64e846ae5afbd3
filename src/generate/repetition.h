// Detects that generated tokens have become periodic.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "limpid/sampler.hpp"

namespace limpid {

// Small models fall into loops and do not leave them. The tokens end with a loop when they end with
// at least kLeastRepeats repeats of a sequence of at most kLongestPeriod tokens, and with at least
// kLeastTokens tokens of it. "ha ha ha", a row of a table or a dozen zeros are shorter.
//
// The method: the last r + p tokens have the period p exactly if each of the last r tokens equals
// the token p places before it. One counter for each p, the length r of this run of equal tokens,
// is therefore enough. A new token lengthens the run or ends it: kLongestPeriod comparisons for
// each token, however long the text is. For "a b c b c b c" and p = 2, the last 4 tokens equal
// those 2 places before them, so r = 4 and the last 6 tokens have the period 2.
class RepetitionDetector {
 public:
  static constexpr int64_t kLongestPeriod = 256;
  static constexpr int64_t kLeastRepeats = 4;
  static constexpr int64_t kLeastTokens = 96;

  // Must be called after each token that is added to `tokens`. Returns true when they end with a
  // loop.
  bool update(std::span<const TokenId> tokens);

 private:
  std::array<int64_t, kLongestPeriod + 1> runs_{};  // runs_[p] is r for the period p
};

}  // namespace limpid
