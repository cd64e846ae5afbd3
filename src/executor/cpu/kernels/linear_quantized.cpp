// The table of the quantised kernels of this instruction set.
#include "executor/cpu/kernels/linear_quantized.h"

#include "executor/cpu/kernels/dot4-inl.h"

namespace limpid::LIMPID_ISA {
namespace {

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

// Some tokens against one K group of codes after another, as in `linear`, but on registers.
template <int kMaxCode>
int64_t dot4_peak(int64_t rounds) {
  constexpr int kTokens = kRows == 16 ? 12 : 4;  // sums that hide the latency of one another
  alignas(64) uint8_t codes[64] = {};
  int8_t x[kTokens][32] = {};
  asm volatile("" : : "r"(codes) : "memory");
  const Codes<kMaxCode> group = ready<kMaxCode>(load_bytes(codes));
  int32_t rows[kRows] = {};
  Ints totals[kTokens];
  for (Ints& total : totals) total = set_ints(0);
  for (int64_t round = 0; round < rounds; ++round) {
    asm volatile("" : : "r"(x) : "memory");  // x may have changed, so nothing can be left out
    LIMPID_UNROLL
    for (int t = 0; t < kTokens; ++t) {
      DotSum<kMaxCode> sum;
      sum.sum = totals[t];
      LIMPID_UNROLL
      for (int g = 0; g < 8; ++g) sum.add(g, group, x[t] + 4 * g);
      totals[t] = sum.end();
    }
  }
  for (const Ints& total : totals) {
    store_ints(rows, total);
    asm volatile("" : : "r"(rows) : "memory");
  }
  return rounds * kTokens * 8 * kRows * 4;
}

}  // namespace

// In the order of PackedFormat.
const QuantizedKernels kQuantizedKernels = {
    quantize_activations,
    {linear_q4_0, linear_q4_1, linear_q4_k, linear_q2_k, linear_q8_0, linear_q5_1, linear_q5_k,
     linear_iq4_xs, linear_q6_k},
    dot4,
    dot4_peak<15>,
    dot4_peak<255>,
};

}  // namespace limpid::LIMPID_ISA
