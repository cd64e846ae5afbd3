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
    int64_t i = begin;
    for (; i + kLanes <= end; i += kLanes) {
      const F32x16 each = load(x + i);
      most = max(most, select_less(abs(each), infinity, each, infinity));  // NaN is not less
    }
    if (i < end) {
      float rest[kLanes];
      for (int64_t j = 0; j < kLanes; ++j) rest[j] = x[i + j < end ? i + j : begin];
      const F32x16 each = load(rest);
      most = max(most, select_less(abs(each), infinity, each, infinity));
    }
    *largest = reduce_max(most);
  }
}

}  // namespace limpid::LIMPID_ISA
