// Rows by index: of tables, and of an activation.
#include <algorithm>

#include "executor/check_shapes.h"
#include "executor/cpu/cpu_executor.h"
#include "tensor/codec.h"

namespace limpid {

Activation CpuExecutor::embed(const Weight& table, EmbedBy by) {
  const std::span<const int32_t> ids = inputs_.rows_of_table(by);
  check_indices("embed", ids, table.rows);
  const LoadedWeight& weight = loaded(table);
  Activation y = allocate(static_cast<int64_t>(ids.size()), table.cols);
  float* out = data(y);
  for_rows(y.rows(), table.cols, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      decode_row(weight.tensor.dtype, weight.rows.row(ids[static_cast<size_t>(t)]),
                 {out + t * table.cols, static_cast<size_t>(table.cols)});
    }
  });
  return y;
}

Activation CpuExecutor::select_outputs(const Activation& x) {
  check_indices("select_outputs", inputs_.output_rows, x.rows());
  Activation y = allocate(inputs_.n_outputs(), x.cols());
  for (int64_t i = 0; i < y.rows(); ++i) {
    std::copy_n(data(x) + inputs_.output_rows[static_cast<size_t>(i)] * x.cols(), x.cols(),
                data(y) + i * x.cols());
  }
  return y;
}

}  // namespace limpid
