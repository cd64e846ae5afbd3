// The order of the rows of Q and K within each head.
//
// RoPE turns the elements of a head in pairs (Su et al. 2021, arXiv:2104.09864). Hugging Face keeps
// the first elements of all pairs and then the second ones; Meta's files, and GGUF's `llama`, keep
// the two elements of a pair side by side. Of a head of six elements that all turn, the same
// element lies at
//
//   interleaved pairs   0 1 2 3 4 5
//   half-split          0 3 1 4 2 5
//
// The decoder works with half-split heads. The CPU executor moves the outputs of the projection and
// not the weights, so that both orders are read as they lie in the file.
#pragma once

#include <cstdint>

namespace limpid {

enum class RowOrder : uint8_t {
  kHalfSplit,         // i pairs with i + n_rot / 2
  kInterleavedPairs,  // 2i pairs with 2i + 1
};

// (always_inline: kernels use these, and a copy of one instruction set must not serve the others.)
//
// Where row `row` of interleaved pairs lies in half-split order. Of every `head_dim` rows the first
// `n_rot`, an even number, move; the others stay.
[[gnu::always_inline]] constexpr int64_t half_split_row(int64_t row, int64_t head_dim,
                                                        int64_t n_rot) {
  const int64_t i = row % head_dim;
  return i < n_rot ? row - i + i / 2 + i % 2 * (n_rot / 2) : row;
}

// The inverse: where row `row` of half-split order lies in interleaved pairs.
[[gnu::always_inline]] constexpr int64_t interleaved_row(int64_t row, int64_t head_dim,
                                                         int64_t n_rot) {
  const int64_t i = row % head_dim;
  const int64_t half = n_rot / 2;
  return i < n_rot ? row - i + i % half * 2 + i / half : row;
}

}  // namespace limpid
