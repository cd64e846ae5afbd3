// Rows by index: of tables, and of an activation.
#include <algorithm>

#include "executor/reference/reference_executor.h"
#include "tensor/codec.h"

namespace limpid {

Activation ReferenceExecutor::embed(const Weight& table, EmbedBy by) {
  const std::span<const int32_t> ids = inputs_.rows_of_table(by);
  Activation y = allocate(static_cast<int64_t>(ids.size()), table.cols);
  const LoadedWeight& weight = weights_[table.id];
  for (size_t t = 0; t < ids.size(); ++t)
    decode_row(weight.source.tensor.dtype, weight.rows.row(ids[t]),
               rows(y)[static_cast<int64_t>(t)]);
  return y;
}

Activation ReferenceExecutor::select_outputs(const Activation& x) {
  Activation y = allocate(inputs_.n_outputs(), x.cols());
  for (int64_t i = 0; i < y.rows(); ++i) {
    std::ranges::copy(rows(x)[inputs_.output_rows[i]], rows(y)[i].begin());
  }
  return y;
}

}  // namespace limpid
