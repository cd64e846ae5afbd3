// Numbers in 16 bits: IEEE 754 binary16, and bfloat16, which is the upper half of an f32.
#include "executor/cpu/kernels.h"
#include "executor/cpu/kernels/lanes-inl.h"

namespace limpid::LIMPID_ISA {
namespace {

template <void (*kStore)(F32x16, uint16_t*)>
void narrow_all(const float* x, int64_t n, uint16_t* y) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) kStore(load(x + i), y + i);
  if (i < n) store_partial<kStore>(load_partial(x + i, n - i), y + i, n - i);
}

template <class Stored>
void widen_all(const uint16_t* x, int64_t n, float* y) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store(Stored::load(x + i), y + i);
  if (i < n) store_partial(Stored::load_partial(x + i, n - i), y + i, n - i);
}

}  // namespace

void narrow(DType type, const float* x, int64_t n, uint16_t* y) {
  type == DType::kF16 ? narrow_all<store_f16>(x, n, y) : narrow_all<store_bf16>(x, n, y);
}

void widen(DType type, const uint16_t* x, int64_t n, float* y) {
  type == DType::kF16 ? widen_all<StoredF16>(x, n, y) : widen_all<StoredBf16>(x, n, y);
}

}  // namespace limpid::LIMPID_ISA
