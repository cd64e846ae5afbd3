// The table of the quantised kernels of this instruction set.
#include "executor/cpu/kernels/linear_quantized.h"

#include "executor/cpu/kernels/dot4-inl.h"

namespace limpid::LIMPID_ISA {
namespace {

void dot4(int32_t* acc, const uint8_t* codes, const int8_t* x) {
  for (int part = 0; part < kParts; ++part) {
    const Codes<255> group = ready<255>(load_bytes(codes + part * kPartBytes));
    int32_t* rows = acc + part * kRows;
    store_ints(rows, dot_groups<1>(load_ints(rows), &group, x));
  }
}

template <int kMaxCode>
int64_t dot4_peak(int64_t rounds) {
  constexpr int kSums = 8;
  alignas(64) uint8_t codes[64] = {};
  int8_t x[32] = {};
  Codes<kMaxCode> groups[8];
  for (auto& group : groups) group = ready<kMaxCode>(load_bytes(codes));
  Ints sums[kSums];
  for (Ints& sum : sums) sum = set_ints(0);
  for (int64_t round = 0; round < rounds; ++round) {
    asm volatile("" : : "r"(x) : "memory");  // x may have changed, so nothing can be left out
    LIMPID_UNROLL
    for (int i = 0; i < kSums; ++i) sums[i] = dot_groups<8>(sums[i], groups, x);
  }
  int32_t rows[kRows];
  for (const Ints& sum : sums) {
    store_ints(rows, sum);
    asm volatile("" : : "r"(rows) : "memory");
  }
  return rounds * kSums * 8 * kRows * 4;
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
