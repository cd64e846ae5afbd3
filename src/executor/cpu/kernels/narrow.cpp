// Numbers in 16 bits: IEEE 754 binary16, and bfloat16, which is the upper half of an f32.
#include "executor/cpu/kernels.h"
#include "executor/cpu/kernels/lanes-inl.h"

namespace limpid::LIMPID_ISA {
namespace {

// Rounds to nearest even. A NaN keeps its upper half and becomes quiet.
LIMPID_INLINE uint16_t to_bf16(float x) {
  uint32_t bits;
  __builtin_memcpy(&bits, &x, sizeof(bits));
  const bool is_number = (bits & 0x7FFFFFFFU) <= 0x7F800000U;
  const uint32_t rounded = (bits + 0x7FFFU + ((bits >> 16U) & 1U)) >> 16U;
  return static_cast<uint16_t>(is_number ? rounded : (bits >> 16U) | 0x40U);
}

template <class Stored>
void widen_all(const uint16_t* x, int64_t n, float* y) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store(Stored::load(x + i), y + i);
  if (i < n) store_partial(Stored::load_partial(x + i, n - i), y + i, n - i);
}

}  // namespace

void narrow(FloatType type, const float* x, int64_t n, uint16_t* y) {
  int64_t i = 0;
  if (type == FloatType::kF16) {
    for (; i + kLanes <= n; i += kLanes) store_f16(load(x + i), y + i);
    if (i < n) store_f16_partial(load_partial(x + i, n - i), y + i, n - i);
    return;
  }
  for (; i + kLanes <= n; i += kLanes) {
    for (int64_t j = 0; j < kLanes; ++j) y[i + j] = to_bf16(x[i + j]);
  }
  for (; i < n; ++i) y[i] = to_bf16(x[i]);
}

void widen(FloatType type, const uint16_t* x, int64_t n, float* y) {
  type == FloatType::kF16 ? widen_all<StoredF16>(x, n, y) : widen_all<StoredBf16>(x, n, y);
}

}  // namespace limpid::LIMPID_ISA
