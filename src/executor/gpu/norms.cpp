#include "base/check.h"
#include "executor/gpu/gpu_executor.h"

namespace limpid {
namespace {

constexpr int kItems = 128;  // of a group, as in kernels/rms_norm.cl.h and layer_norm.cl.h

}  // namespace

Activation GpuExecutor::rms_norm(const Activation& x, const Weight& weight, float eps) {
  LIMPID_CHECK(ShapeError, weight.cols > 0 && x.cols() % weight.cols == 0,
               "[rms_norm] weight [{}], x [{}, {}]", weight.cols, x.rows(), x.cols());
  Activation y = allocate(x.rows(), x.cols());
  const gpu::Grid grid{x.rows() * (x.cols() / weight.cols), 1, kItems};
  launch(*ops_.rms_norm, grid, buffer(x), *vector_weight(weight, weight.cols, "rms_norm").data,
         buffer(y), static_cast<int32_t>(weight.cols), eps);
  return y;
}

Activation GpuExecutor::layer_norm(const Activation& x, const Weight& weight, const Weight& bias,
                                   float eps) {
  const gpu::Buffer& scale = *vector_weight(weight, x.cols(), "layer_norm").data;
  const gpu::Buffer& shift = bias ? *vector_weight(bias, x.cols(), "layer_norm").data : scale;
  Activation y = allocate(x.rows(), x.cols());
  launch(*ops_.layer_norm, {x.rows(), 1, kItems}, buffer(x), scale, shift, bias ? 1 : 0, buffer(y),
         static_cast<int32_t>(x.cols()), eps);
  return y;
}

}  // namespace limpid
