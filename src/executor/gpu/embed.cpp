// Rows by index: of tables, and of an activation.
#include "executor/check_shapes.h"
#include "executor/gpu/gpu_executor.h"
#include "executor/gpu/packed_matrix.h"

namespace limpid {

Activation GpuExecutor::embed(const Weight& table, EmbedBy by) {
  constexpr int kItems = 64;  // of a group, as in kernels/embed.cl.h
  check_indices("embed", inputs_.rows_of_table(by), table.rows);
  const int32_t list = by == EmbedBy::kTokenId ? lists_.token_ids : lists_.positions;
  const int64_t n = inputs_.n_tokens();
  Activation y = allocate(n, table.cols);
  const LoadedWeight& loaded = weight(table);
  launch(*matrix_kernels(loaded.dtype).embed,
         gpu::cover_rows(n, gpu::octets_of_row(table.cols), kItems), *loaded.data,
         gpu::as_int(table.rows), *step_, list, buffer(y), gpu::as_int(table.cols));
  return y;
}

Activation GpuExecutor::select_outputs(const Activation& x) {
  constexpr int kItems = 128;  // of a group, as in kernels/pointwise.cl.h
  check_indices("select_outputs", inputs_.output_rows, x.rows());
  Activation y = allocate(inputs_.n_outputs(), x.cols());
  launch(*ops_.select_outputs, gpu::cover_rows(y.rows(), y.cols(), kItems), buffer(x), *step_,
         lists_.output_rows, buffer(y), gpu::as_int(y.cols()));
  return y;
}

}  // namespace limpid
