#include "executor/executor.h"

#include "base/check.h"
#include "base/checked.h"

namespace limpid {

uint64_t KvLayout::n_bytes() const {
  const Shape per_block{n_layers, n_blocks, n_kv_heads, kKvBlock * head_dim};
  const auto sum = checked_add(tensor_bytes(k_dtype, per_block), tensor_bytes(v_dtype, per_block));
  LIMPID_CHECK(ShapeError, sum.has_value(), "[kv] cache {} has too many bytes", per_block.to_string());
  return *sum;
}

void StepInputs::clear() {
  for (auto* list : {&token_ids, &positions, &sequences, &output_rows, &block_table, &block_table_begin}) list->clear();
}

}  // namespace limpid
