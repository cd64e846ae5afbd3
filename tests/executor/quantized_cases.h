// Random quantised matrices of every block type.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "base/thread_pool.h"
#include "tensor/codec.h"
#include "tensor/tensor.h"

namespace limpid {

inline ThreadPool one_thread(1);

inline constexpr DType kQuantizedDTypes[] = {
    DType::kQ4_0, DType::kQ4_1, DType::kQ5_0, DType::kQ5_1, DType::kQ8_0,   DType::kQ2_K,
    DType::kQ3_K, DType::kQ4_K, DType::kQ5_K, DType::kQ6_K, DType::kIQ4_NL, DType::kIQ4_XS,
};

// Byte offsets of a block's half-precision numbers; -1 for none.
struct HalfOffsets {
  int first;
  int second;
};
inline HalfOffsets half_offsets(DType dtype) {
  switch (dtype) {
    case DType::kQ4_1:
    case DType::kQ5_1:
    case DType::kQ4_K:
    case DType::kQ5_K:
      return {0, 2};
    case DType::kQ2_K:
      return {80, 82};
    case DType::kQ3_K:
      return {108, -1};
    case DType::kQ6_K:
      return {208, -1};
    default:
      return {0, -1};
  }
}

// A matrix whose codes take every value and whose scales are of either sign, about 0.01.
inline Tensor random_quantized(DType dtype, int64_t rows, int64_t cols, uint32_t seed) {
  Tensor tensor(dtype, Shape{rows, cols});
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> scale(-0.02F, 0.02F);
  const uint64_t n_bytes = tensor.view().n_bytes();
  for (uint64_t i = 0; i < n_bytes; ++i) tensor.data()[i] = static_cast<std::byte>(random() & 0xff);
  const HalfOffsets offsets = half_offsets(dtype);
  for (uint64_t block = 0; block < n_bytes; block += dtype_info(dtype).block_bytes) {
    for (const int offset : {offsets.first, offsets.second}) {
      if (offset < 0) continue;
      const uint16_t bits = f32_to_f16(scale(random));
      tensor.data()[block + offset] = static_cast<std::byte>(bits & 0xff);
      tensor.data()[block + offset + 1] = static_cast<std::byte>(bits >> 8);
    }
  }
  return tensor;
}

inline std::vector<float> random_floats(int64_t n, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.0F, 1.5F);
  std::vector<float> values(static_cast<size_t>(n));
  for (float& value : values) value = normal(random);
  return values;
}

}  // namespace limpid
