// f32 activations to int8, in the tiles that linear_quantized reads.
#include "executor/cpu/kernels/lanes-inl.h"
#include "executor/cpu/kernels/linear_quantized.h"
#include "executor/cpu/quantized_kernels.h"

namespace limpid::LIMPID_ISA {
namespace {

// Where one slot of a tile writes its share of a block's records.
struct SlotOut {
  std::byte* record;
  std::byte* half_record;
  int64_t slots;
  int64_t slot;

  template <class T>
  LIMPID_INLINE void put(int field, T value) const {
    __builtin_memcpy(record + slots * (kScaleBlock + 4 * field) + slot * 4, &value, 4);
  }
  template <class T>
  LIMPID_INLINE void put_half(int field, T value) const {
    __builtin_memcpy(half_record + slots * 4 * field + slot * 4, &value, 4);
  }
  int8_t* codes() const { return reinterpret_cast<int8_t*>(record) + slot * kScaleBlock; }
};

void put_sums(const SlotOut& out, float scale, int32_t sum0, int32_t sum1) {
  const int32_t sum = sum0 + sum1;
  out.put(0, scale);
  out.put(1, scale * static_cast<float>(sum));
  out.put(2, -8 * sum);
  out.put(3, -128 * sum);
  out.put_half(0, -32 * sum0);
  out.put_half(1, -32 * sum1);
  out.put_half(2, scale * static_cast<float>(sum0));
  out.put_half(3, scale * static_cast<float>(sum1));
}

void put_constant(const SlotOut& out, float scale) {
  __builtin_memset(out.codes(), 0, kScaleBlock);
  put_sums(out, scale, 0, 0);
}

// Below this 127 / amax would leave f32; such a block counts as zero.
constexpr float kSmallestMaximum = 0x1p-120F;

void quantize_block(const float* x, const SlotOut& out) {
  const F32x16 a = load(x);
  const F32x16 b = load(x + 16);
  // x - x is 0 unless x is infinite or NaN; then it is NaN, and so is the sum.
  const float finite = reduce_add(add(sub(a, a), sub(b, b)));
  if (finite != 0.0F) {
    put_constant(out, __builtin_nanf(""));
    return;
  }
  const float amax = reduce_max(max(abs(a), abs(b)));
  if (amax < kSmallestMaximum) {
    put_constant(out, 0.0F);
    return;
  }
  const F32x16 inverse = broadcast(127.0F / amax);
  const I32x16 qa = to_int(mul(a, inverse));
  const I32x16 qb = to_int(mul(b, inverse));
  store_i8(qa, out.codes());
  store_i8(qb, out.codes() + 16);
  put_sums(out, amax / 127.0F, reduce_add(qa), reduce_add(qb));
}

}  // namespace

void quantize_activations(const QuantizeTask& task) {
  const int64_t n_blocks = task.cols / kScaleBlock;
  std::byte* half_records = task.out + token_slots(task.n_tokens) * n_blocks * kActivationRecord;
  int64_t tile_slot = 0;
  for (int64_t tile_token = 0; tile_token < task.token_end;) {
    const int64_t n_left = task.n_tokens - tile_token;
    const int64_t slots = token_tile(n_left);
    for (int64_t slot = 0; slot < slots; ++slot) {
      // Padding belongs to the last token.
      const int64_t token = tile_token + slot;
      const int64_t owner = token < task.n_tokens ? token : task.n_tokens - 1;
      if (owner < task.token_begin || owner >= task.token_end) continue;
      for (int64_t block = 0; block < n_blocks; ++block) {
        const int64_t at = tile_slot * n_blocks + slots * block;
        const SlotOut out = {task.out + at * kActivationRecord,
                             half_records + at * kActivationHalfRecord, slots, slot};
        if (token < task.n_tokens) {
          quantize_block(task.x + token * task.x_stride + block * kScaleBlock, out);
        } else {
          put_constant(out, 0.0F);
        }
      }
    }
    tile_token += n_left < slots ? n_left : slots;
    tile_slot += slots;
  }
}

}  // namespace limpid::LIMPID_ISA
