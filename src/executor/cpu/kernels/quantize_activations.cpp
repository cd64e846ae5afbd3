// f32 activations to int8, in the tiles that linear_quantized reads.
//
// 16 neighbouring columns of a token (half a block) share a scale: with amax the largest magnitude,
// q = x * 127 / amax, rounded to the nearest even, and x is about q * (amax / 127). Example: of
// (0.5, -2, 1, 0, …) with amax 2, q is (32, -127, 64, 0, …).
//
// A record has more than codes and scales: all that the product needs of a token and that does not
// depend on the row of the weight. Formats with a minimum add minimum * scale * sum(q); formats
// whose codes are less 8, 32 or 128 begin their integer sum at -8, -32 or -128 times sum(q).
// Computed here once, they are read by thousands of rows.
#include "executor/cpu/kernels.h"
#include "executor/cpu/kernels/lanes-inl.h"

namespace limpid::LIMPID_ISA {
namespace {

// With a smaller amax, 127 / amax would overflow f32; such a half counts as zero.
constexpr float kSmallestMaximum = 0x1p-120F;
// The bits of numbers >= 0 have the order of the numbers, and those of NaN are larger still.
constexpr int32_t kBitsOfInfinity = 0x7F800000;

// Sixteen halves side by side: a lane each, and each operation serves all of them.
constexpr int kBatch = kLanes;
struct Batch {
  const float* x[kBatch];
  int8_t* codes[kBatch];
};

// Writes the codes of a batch, and the scale and the sum of the codes of each half. The codes of an
// infinity or a NaN are unspecified until they are replaced, and their sum may wrap around.
LIMPID_INLINE void quantize_batch(const Batch& batch, float* scales, int32_t* sums) {
  I32x16 magnitudes[kBatch];
#pragma GCC unroll 16
  for (int i = 0; i < kBatch; ++i) magnitudes[i] = bits_of_float(abs(load(batch.x[i])));
  int32_t largest[kBatch];
  fold_all<kBatch>(magnitudes, largest, kLarger);
  const F32x16 amax = float_of_bits(load(largest));
  const F32x16 smallest = broadcast(kSmallestMaximum);
  float factors[kBatch];
  store(select_less(amax, smallest, zero(), div(broadcast(127.0F), amax)), factors);
  store(select_less(amax, smallest, zero(), div(amax, broadcast(127.0F))), scales);
  U32x16 codes[kBatch];
#pragma GCC unroll 16
  for (int i = 0; i < kBatch; ++i) {
    const I32x16 q = to_int(mul(load(batch.x[i]), broadcast(factors[i])));
    store_i8(q, batch.codes[i]);
    codes[i] = as_unsigned(q);
  }
  fold_all<kBatch>(codes, sums, kAdd);
  for (int i = 0; i < kBatch; ++i) {
    if (largest[i] < kBitsOfInfinity) continue;
    __builtin_memset(batch.codes[i], 0, kHalfBlock);
    scales[i] = __builtin_nanf("");
    sums[i] = 0;
  }
}

// Fields of all slots of a block, from the scales and sums of its first half, then of the second.
template <int kSlots>
LIMPID_INLINE void put_fields(const float* scales, const int32_t* sums, std::byte* record) {
  struct Fields {
    float scales[2][kSlots];
    float half_sums[2][kSlots];
    float block_sums[kSlots];
    int32_t starts[3][2][kSlots];
  } fields;
  static_assert(sizeof(Fields) == kSlots * (kActivationRecord - kScaleBlock));
  constexpr int32_t kZeros[] = {8, 32, 128};
  for (int half = 0; half < 2; ++half) {
    for (int slot = 0; slot < kSlots; ++slot) {
      const float scale = scales[half * kSlots + slot];
      const int32_t sum = sums[half * kSlots + slot];
      fields.scales[half][slot] = scale;
      fields.half_sums[half][slot] = scale * static_cast<float>(sum);
      for (int i = 0; i < 3; ++i) fields.starts[i][half][slot] = -kZeros[i] * sum;
    }
  }
  for (int slot = 0; slot < kSlots; ++slot) {
    fields.block_sums[slot] = fields.half_sums[0][slot] + fields.half_sums[1][slot];
  }
  __builtin_memcpy(record + kSlots * kScaleBlock, &fields, sizeof(fields));
}

// Quantises n_tokens tokens into a tile of kSlots slots, whose records begin at `out`.
template <int kSlots>
void quantize_tile(const float* x, int64_t x_stride, int64_t n_tokens, int64_t n_blocks,
                   std::byte* out) {
  constexpr int kHalves = 2 * kSlots;  // of a block
  constexpr int kBlocks = kHalves < kBatch ? kBatch / kHalves : 1;
  alignas(64) static constexpr float kNothing[kScaleBlock] = {};  // padding
  for (int64_t first = 0; first < n_blocks; first += kBlocks) {
    const auto record = [&](int64_t block) { return out + block * kSlots * kActivationRecord; };
    float scales[kBlocks * kHalves];
    int32_t sums[kBlocks * kHalves];
    int8_t unused[kHalfBlock];  // the codes of blocks beyond the last one
    for (int begin = 0; begin < kBlocks * kHalves; begin += kBatch) {
      Batch batch;
      for (int i = 0; i < kBatch; ++i) {
        const int64_t block = first + (begin + i) / kHalves;
        const int half = (begin + i) % kHalves / kSlots;
        const int slot = (begin + i) % kSlots;
        const bool is_token = slot < n_tokens && block < n_blocks;
        batch.x[i] =
            is_token ? x + slot * x_stride + block * kScaleBlock + half * kHalfBlock : kNothing;
        batch.codes[i] = block < n_blocks ? reinterpret_cast<int8_t*>(record(block)) +
                                                slot * kScaleBlock + half * kHalfBlock
                                          : unused;
      }
      quantize_batch(batch, scales + begin, sums + begin);
    }
    for (int i = 0; i < kBlocks && first + i < n_blocks; ++i) {
      put_fields<kSlots>(scales + i * kHalves, sums + i * kHalves, record(first + i));
    }
  }
}

}  // namespace

void quantize_activations(const float* x, int64_t n_tokens, int64_t cols, int64_t token_begin,
                          int64_t token_end, std::byte* out) {
  const int64_t n_blocks = cols / kScaleBlock;
  out += token_begin * n_blocks * kActivationRecord;
  for (int64_t token = token_begin; token < token_end;) {
    const int64_t n_left = n_tokens - token;
    const int64_t slots = token_tile(n_left);
    const int64_t n_of_tile = n_left < slots ? n_left : slots;
    const auto quantize = slots == 16  ? quantize_tile<16>
                          : slots == 8 ? quantize_tile<8>
                          : slots == 4 ? quantize_tile<4>
                          : slots == 2 ? quantize_tile<2>
                                       : quantize_tile<1>;
    quantize(x + token * cols, cols, n_of_tile, n_blocks, out);
    token += n_of_tile;
    out += slots * n_blocks * kActivationRecord;
  }
}

}  // namespace limpid::LIMPID_ISA
