// What this machine could do at best with one instruction set: the limits that `limpid bench` and
// `limpid devices --measure` compare kernels with.
#include "executor/cpu/kernels.h"
#include "executor/cpu/kernels/dot4-inl.h"
#include "executor/cpu/kernels/lanes-inl.h"

namespace limpid::LIMPID_ISA {
namespace {

// Multiplies some tokens with one K group of codes after another, as linear_quantized does, but
// only in registers.
template <int kMaxCode>
int64_t dot4_peak(int64_t rounds) {
  // Sums that hide the latency of one another, as many as registers hold.
  constexpr int kTokens = kNative == 8 ? 4 : sizeof(DotSum<kMaxCode>) > sizeof(Ints) ? 8 : 12;
  alignas(64) uint8_t codes[64] = {};
  int8_t x[kTokens][32] = {};
  asm volatile("" : : "r"(codes) : "memory");
  const Codes<kMaxCode> group = ready<kMaxCode>(load_bytes(codes));
  int32_t rows[kRows] = {};
  Ints totals[kTokens];
  LIMPID_UNROLL
  for (Ints& total : totals) total = set_ints(0);
  for (int64_t round = 0; round < rounds; ++round) {
    asm volatile("" : : "r"(x) : "memory");  // x may have changed, so nothing can be left out
    DotSum<kMaxCode> sums[kTokens];
    LIMPID_UNROLL
    for (int t = 0; t < kTokens; ++t) sums[t].sum = totals[t];
    LIMPID_UNROLL
    for (int g = 0; g < 8; ++g) {
      LIMPID_UNROLL
      for (int t = 0; t < kTokens; ++t) sums[t].add(g, group, x[t] + 4 * g);
    }
    LIMPID_UNROLL
    for (int t = 0; t < kTokens; ++t) totals[t] = sums[t].end();
  }
  LIMPID_UNROLL
  for (const Ints& total : totals) {
    store_ints(rows, total);
    asm volatile("" : : "r"(rows) : "memory");
  }
  return rounds * kTokens * 8 * kRows * 4;
}

// Chains of what `add` does to a sum, in registers. Returns the number of sums of one lane.
template <class Add>
LIMPID_INLINE int64_t chains_peak(int64_t rounds, Add add) {
  // More than latency times units, and in registers.
  constexpr int kChains = kNative == 16 ? 24 : kNative == 8 ? 6 : 12;
  F32x16 sums[kChains];
  for (F32x16& sum : sums) sum = broadcast(1.0F);
  for (int64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 24
    for (F32x16& sum : sums) sum = add(sum);
  }
  float lanes[kLanes];
  for (const F32x16& sum : sums) {
    store(sum, lanes);
    asm volatile("" : : "r"(lanes) : "memory");  // nothing can be left out
  }
  return rounds * kChains * kLanes;
}

// One stream after another lies in `data`; a line of each is read in turn, each into a sum of its
// own. The sums are those of bits, by exclusive or, which cannot overflow.
template <int kStreams>
int64_t read_side_by_side(const std::byte* data, int64_t n_bytes, int64_t ahead) {
  constexpr int64_t kLine = 64;
  const auto add_bits = [](auto x, auto y) { return x ^ y; };
  const int64_t stream_bytes = n_bytes / kStreams / kLine * kLine;
  I32x16 sums[kStreams];
  for (I32x16& sum : sums) sum = broadcast_i32(0);
  for (int64_t at = 0; at < stream_bytes; at += kLine) {
#pragma GCC unroll 4
    for (int s = 0; s < kStreams; ++s) {
      const std::byte* line = data + s * stream_bytes + at;
      if (ahead > 0) __builtin_prefetch(line + ahead);
      sums[s] = lanewise(add_bits, sums[s], load(reinterpret_cast<const int32_t*>(line)));
    }
  }
  int64_t total = 0;
  for (const I32x16& sum : sums) total ^= fold(sum, add_bits);
  return total;
}

}  // namespace

int64_t fma_peak(int64_t rounds) {
  const F32x16 factor = broadcast(0.999F);
  const F32x16 term = broadcast(0.001F);
  return chains_peak(rounds, [&](F32x16 sum) { return fma(sum, factor, term); });
}

int64_t bf16_peak(int64_t rounds) {
  uint16_t pairs[2 * kLanes];
  for (uint16_t& half : pairs) half = 0x3C00;  // 2^-7
  asm volatile("" : : "r"(pairs) : "memory");  // the products are not known beforehand
  const I32x16 factors = load(reinterpret_cast<const int32_t*>(pairs));
  return 2 *
         chains_peak(rounds, [&](F32x16 sum) { return add_pair_products(factors, factors, sum); });
}

int64_t dot4_peak_nibble(int64_t rounds) { return dot4_peak<15>(rounds); }
int64_t dot4_peak_byte(int64_t rounds) { return dot4_peak<255>(rounds); }

int64_t read_streams(const std::byte* data, int64_t n_bytes, int n_streams, int64_t ahead) {
  if (n_streams == 1) return read_side_by_side<1>(data, n_bytes, ahead);
  if (n_streams == 2) return read_side_by_side<2>(data, n_bytes, ahead);
  return read_side_by_side<4>(data, n_bytes, ahead);
}

}  // namespace limpid::LIMPID_ISA
