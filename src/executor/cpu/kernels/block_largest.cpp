// The largest element of each block of a row: read_best.cpp.
#include <limits>

#include "executor/cpu/kernels.h"
#include "executor/cpu/kernels/lanes-inl.h"

namespace limpid::LIMPID_ISA {

void block_largest(const float* x, int64_t n, float* largest) {
  const F32x16 infinity = broadcast(std::numeric_limits<float>::infinity());
  for (int64_t begin = 0; begin < n; begin += kBestBlock, ++largest) {
    const int64_t end = begin + kBestBlock < n ? begin + kBestBlock : n;
    F32x16 most = broadcast(std::numeric_limits<float>::lowest());
    for (int64_t i = begin; i < end; i += kLanes) {
      float last[kLanes];  // fewer than 16: the block's first element takes the place of the others
      if (i + kLanes > end) {
        for (int64_t j = 0; j < kLanes; ++j) last[j] = x[i + j < end ? i + j : begin];
      }
      const F32x16 each = load(i + kLanes > end ? last : x + i);
      most = max(most, select_less(abs(each), infinity, each, infinity));  // NaN is not less
    }
    *largest = reduce_max(most);
  }
}

}  // namespace limpid::LIMPID_ISA
