#include "generate/repetition.h"

#include <algorithm>

namespace limpid {

bool RepetitionDetector::update(std::span<const TokenId> tokens) {
  bool found = false;
  const int64_t last = std::ssize(tokens) - 1;
  for (int64_t period = 1; period <= std::min(kLongestPeriod, last); ++period) {
    int64_t& run = runs_[static_cast<size_t>(period)];
    const bool equal =
        tokens[static_cast<size_t>(last)] == tokens[static_cast<size_t>(last - period)];
    run = equal ? run + 1 : 0;
    found |= run + period >= std::max(kLeastRepeats * period, kLeastTokens);
  }
  return found;
}

}  // namespace limpid
