#include "executor/executor.h"

#include "base/check.h"
#include "base/checked.h"
#include "tensor/codec.h"

namespace limpid {

int64_t canonical_row(RowOrder order, int64_t head_dim, int64_t row) {
  if (order == RowOrder::kAsStored) return row;
  const int64_t head = row / head_dim;
  const int64_t within = row % head_dim;
  return head * head_dim + within / 2 + (within % 2) * (head_dim / 2);
}

std::vector<float> decode_vector(const WeightSource& source) {
  const std::vector<float> stored = decode(source.tensor);
  std::vector<float> canonical(stored.size());
  for (size_t i = 0; i < stored.size(); ++i) {
    canonical[canonical_row(source.row_order, source.head_dim, static_cast<int64_t>(i))] =
        stored[i];
  }
  return canonical;
}

uint64_t KvLayout::n_bytes() const {
  const Shape per_block{n_layers, n_blocks, n_kv_heads, kKvBlock * head_dim};
  const auto sum = checked_add(tensor_bytes(k_dtype, per_block), tensor_bytes(v_dtype, per_block));
  LIMPID_CHECK(ShapeError, sum.has_value(), "[kv] cache {} has too many bytes",
               per_block.to_string());
  return *sum;
}

void StepInputs::clear() {
  for (auto* list :
       {&token_ids, &positions, &sequences, &output_rows, &block_table, &block_table_begin})
    list->clear();
}

}  // namespace limpid
