// Notices that generated tokens have become periodic.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "limpid/sampler.hpp"

namespace limpid {

// Small models fall into loops and do not come out of them. A loop is certain when the tokens end
// with at least kLeastRepeats repeats of a sequence of at most kLongestPeriod tokens, and with at
// least kLeastTokens tokens of it, so that "ha ha ha", a row of a table or a dozen zeros are none.
//
// The method: the last r + p tokens have the period p exactly if each of the last r tokens equals
// the one p places before it. So one counter for each p, the length of that run of equal tokens, is
// all there is to know. A new token lengthens the run or ends it: kLongestPeriod comparisons for
// each token, however long the text is.
class RepetitionDetector {
 public:
  static constexpr int64_t kLongestPeriod = 256;
  static constexpr int64_t kLeastRepeats = 4;
  static constexpr int64_t kLeastTokens = 96;

  // To be called after each token that is added to `tokens`. True when they end with a loop.
  bool update(std::span<const TokenId> tokens);

 private:
  std::array<int64_t, kLongestPeriod + 1> runs_{};  // by period
};

}  // namespace limpid
