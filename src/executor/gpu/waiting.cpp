// Ops that wait because the launch of the next op may include them: see Waiting in gpu_executor.h.
#include <algorithm>
#include <utility>

#include "executor/gpu/gpu_executor.h"

namespace limpid {

bool GpuExecutor::Waiting::has(const gpu::Buffer* buffer) const {
  const auto is_of = [&](const auto& op) { return op.x == buffer || op.y == buffer; };
  if (norm && is_of(*norm)) return true;
  if (product) {
    if (product->x == buffer || (product->norm && is_of(*product->norm))) return true;
    if (std::ranges::find(product->matrices, buffer, &Product::Matrix::y) !=
        product->matrices.end())
      return true;
  }
  return std::ranges::any_of(rotations, is_of);
}

void GpuExecutor::settle() {
  if (!waiting_.norm && !waiting_.product && waiting_.rotations.empty()) return;
  const Waiting all = std::exchange(waiting_, {});
  if (all.norm) launch_norm(*all.norm);
  if (all.product) launch_product(*all.product);
  for (const Rotation& rotation : all.rotations) launch_rotation(rotation);
}

}  // namespace limpid
