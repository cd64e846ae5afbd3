#include "executor/probe/probe.h"

#include "executor/cpu/kernels/dot4-inl.h"
#include "executor/cpu/kernels/math-inl.h"

namespace limpid::LIMPID_ISA {
namespace {

void lanes(const float* a, const float* b, const float* c, float* out) {
  const F32x16 x = load(a), y = load(b), z = load(c);
  uint16_t halves[kLanes];
  store_f16(x, halves);
  const F32x16 results[kLanesProbeResults] = {
      max(x, y),
      min(x, y),
      add(x, y),
      sub(x, y),
      mul(x, y),
      div(x, y),
      fma(x, y, z),
      sqrt(x),
      abs(x),
      select_less(x, y, y, z),
      load_f16(halves),
      StoredF16::load_partial(halves, 11),
      broadcast(reduce_add(x)),
      to_float(to_int(min(max(x, broadcast(-1e6F)), broadcast(1e6F)))),
  };
  for (int i = 0; i < kLanesProbeResults; ++i) store(results[i], out + i * kLanes);
}

void exp_elements(const float* x, int64_t n, float* y) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store(exp(load(x + i)), y + i);
  if (i < n) store_partial(exp(load_partial(x + i, n - i)), y + i, n - i);
}

void f32_to_f16(const float* x, int64_t n, uint16_t* y) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store_f16(load(x + i), y + i);
  if (i < n) store_partial<store_f16>(load_partial(x + i, n - i), y + i, n - i);
}

void f16_to_f32(const uint16_t* x, int64_t n, float* y) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store(load_f16(x + i), y + i);
  if (i < n) store_partial(StoredF16::load_partial(x + i, n - i), y + i, n - i);
}

void bf16_to_f32(const uint16_t* x, int64_t n, float* y) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store(load_bf16(x + i), y + i);
  if (i < n) store_partial(StoredBf16::load_partial(x + i, n - i), y + i, n - i);
}

void dot4(int32_t* acc, const uint8_t* codes, const int8_t* x) {
  for (int part = 0; part < kParts; ++part) {
    int32_t* rows = acc + part * kRows;
    DotSum<255> sum;
    sum.begin(0);
    sum.add(0, ready<255>(load_bytes(codes + part * kPartBytes)), x);
    int32_t products[kRows];
    store_ints(products, sum.end());
    for (int r = 0; r < kRows; ++r) rows[r] += products[r];
  }
}

}  // namespace

extern const Probe kProbe;
const Probe kProbe = {lanes, exp_elements, f32_to_f16, f16_to_f32, bf16_to_f32, dot4};

}  // namespace limpid::LIMPID_ISA
