// Dropout (Srivastava et al. 2014, "Dropout: A simple way to prevent neural networks from
// overfitting"): while a model learns, each number is 0 with probability p and is divided by 1 - p
// otherwise, so that its mean stays.
//
// Which numbers are dropped is a function of their place (base/philox.h) and of nothing else: so a
// mask is never stored but computed again on the way back, and threads, tiles and the order of work
// do not change it.
#pragma once

#include <cstdint>

#include "base/philox.h"

namespace limpid {

struct Dropout {
  float probability = 0;  // in [0, 1); 0: nothing is dropped
  uint64_t key = 0;       // of the batch
  uint32_t place = 0;     // of the op in the forward pass
  explicit operator bool() const { return probability > 0; }
};

// factors[j] = 0 or 1 / (1 - p), of element (row, begin + j) of the op's result, for j in [0, n).
// `begin` is a multiple of 4. (always_inline: see row_order.h.)
[[gnu::always_inline]] inline void dropout_factors(const Dropout& dropout, int64_t row,
                                                   int64_t begin, int64_t n, float* factors) {
  const auto dropped = static_cast<uint32_t>(static_cast<double>(dropout.probability) * 0x1p32);
  const float kept = 1.0F / (1.0F - dropout.probability);
  for (int64_t j = 0; j < n; j += 4) {
    uint32_t words[4] = {static_cast<uint32_t>((begin + j) / 4), static_cast<uint32_t>(row),
                         static_cast<uint32_t>(static_cast<uint64_t>(row) >> 32U), dropout.place};
    philox4x32(words, dropout.key);
    for (int64_t i = 0; i < 4 && j + i < n; ++i) factors[j + i] = words[i] < dropped ? 0.0F : kept;
  }
}

}  // namespace limpid
