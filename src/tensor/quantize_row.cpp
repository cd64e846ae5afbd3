// Quantises a row block by block. Blocks are independent of each other, except for the drift, the
// sum of error times mean activation over the blocks so far (quantize_drift.h).
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

}  // namespace

void quantize_row(DType dtype, std::span<const float> values, const ColumnFacts& facts,
                  std::byte* destination) {
  if (is_plain_float(dtype)) return encode_row(dtype, values, destination);
  LIMPID_CHECK(UnsupportedError, is_quantized(dtype), "tensors cannot be quantised to {}",
               dtype_info(dtype).name);
  check_whole_blocks(dtype, values.size());
  for (const std::span<const float> columns : {facts.importance, facts.mean}) {
    LIMPID_CHECK(ShapeError, columns.empty() || columns.size() == values.size(),
                 "facts about {} columns for {} values", columns.size(), values.size());
  }
  visit_block_type(dtype, [&]<typename Block>(const Block&) {
    quantize_blocks<Block>(values, facts, destination);
  });
}

}  // namespace limpid
