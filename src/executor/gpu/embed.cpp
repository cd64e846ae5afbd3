// Rows by index: of tables, and of an activation.
#include "executor/check_shapes.h"
#include "executor/gpu/gpu_executor.h"
#include "executor/gpu/packed_matrix.h"

namespace limpid {

Activation GpuExecutor::look_up(const Weight& table, std::span<const int32_t> ids, int32_t list,
                                std::string_view op) {
  constexpr int kItems = 64;  // of a group, as in kernels/embed.cl.h
  check_indices(op, ids, table.rows);
  const auto n = static_cast<int64_t>(ids.size());
  Activation y = allocate(n, table.cols);
  const LoadedWeight& loaded = weight(table);
  launch(*matrix_kernels(loaded.dtype).embed,
         gpu::cover_rows(n, gpu::octets_of_row(table.cols), kItems), *loaded.data,
         gpu::as_int(table.rows), *step_, list, buffer(y), gpu::as_int(table.cols));
  return y;
}

Activation GpuExecutor::embed(const Weight& table) {
  return look_up(table, inputs_.token_ids, lists_.token_ids, "embed");
}

Activation GpuExecutor::embed_positions(const Weight& table) {
  return look_up(table, inputs_.positions, lists_.positions, "embed_positions");
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
