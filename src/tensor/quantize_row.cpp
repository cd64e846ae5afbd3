#include "tensor/quantize_row.h"

#include <cstring>

#include "base/check.h"
#include "tensor/codec.h"
#include "tensor/quantize_block.h"

namespace limpid {
namespace {

const float* from(std::span<const float> columns, size_t begin) {
  return columns.empty() ? nullptr : columns.data() + begin;
}

template <typename Block>
void quantize_blocks(std::span<const float> values, const ColumnFacts& facts,
                     std::byte* destination) {
  const size_t block_size = dtype_info(Block::kDType).block_size;
  float drift = 0;
  for (size_t i = 0; i < values.size() / block_size; ++i) {
    const size_t begin = i * block_size;
    const BlockColumns columns{from(facts.importance, begin), from(facts.mean, begin),
                               facts.variance, &drift};
    Block block;
    quantize_block(values.data() + begin, columns, block);
    std::memcpy(destination + i * sizeof(Block), &block, sizeof(Block));
  }
}

using RowQuantizer = void (*)(std::span<const float>, const ColumnFacts&, std::byte*);

// Null for what has no search.
RowQuantizer quantizer_of(DType dtype) {
  switch (dtype) {
    case DType::kQ4_0:
      return quantize_blocks<BlockQ4_0>;
    case DType::kQ4_1:
      return quantize_blocks<BlockQ4_1>;
    case DType::kQ5_0:
      return quantize_blocks<BlockQ5_0>;
    case DType::kQ5_1:
      return quantize_blocks<BlockQ5_1>;
    case DType::kQ8_0:
      return quantize_blocks<BlockQ8_0>;
    case DType::kQ2_K:
      return quantize_blocks<BlockQ2_K>;
    case DType::kQ3_K:
      return quantize_blocks<BlockQ3_K>;
    case DType::kQ4_K:
      return quantize_blocks<BlockQ4_K>;
    case DType::kQ5_K:
      return quantize_blocks<BlockQ5_K>;
    case DType::kQ6_K:
      return quantize_blocks<BlockQ6_K>;
    case DType::kIQ4_NL:
      return quantize_blocks<BlockIQ4_NL>;
    case DType::kIQ4_XS:
      return quantize_blocks<BlockIQ4_XS>;
    default:
      return nullptr;
  }
}

bool is_plain_float(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16;
}

}  // namespace

void quantize_row(DType dtype, std::span<const float> values, const ColumnFacts& facts,
                  std::byte* destination) {
  if (is_plain_float(dtype)) return encode_row(dtype, values, destination);
  const RowQuantizer quantize = quantizer_of(dtype);
  const DTypeInfo& info = dtype_info(dtype);
  LIMPID_CHECK(UnsupportedError, quantize != nullptr, "no tensor is quantised to {}", info.name);
  LIMPID_CHECK(ShapeError, values.size() % info.block_size == 0,
               "{} elements are no whole number of {} blocks of {}", values.size(), info.name,
               info.block_size);
  for (const std::span<const float> columns : {facts.importance, facts.mean}) {
    LIMPID_CHECK(ShapeError, columns.empty() || columns.size() == values.size(),
                 "facts about {} columns for {} values", columns.size(), values.size());
  }
  quantize(values, facts, destination);
}

}  // namespace limpid
