#include "executor/check_shapes.h"
#include "executor/gpu/gpu_executor.h"

namespace limpid {
namespace {

constexpr int kItems = 128;     // of a group, as in kernels/layer_norm.cl.h
constexpr int kRmsItems = 256;  // and in kernels/formulas.cl.h
// Columns of a row that a group of a linear layer can norm: the 512 octets (NORMED_OCTETS) of
// kernels/linear_one.cl.h.
constexpr int64_t kMostNormed = 4096;

}  // namespace

Activation GpuExecutor::rms_norm(const Activation& x, const Weight& weight, float eps) {
  check_rms_norm(x, weight);
  const gpu::Buffer& factors = *this->weight(weight).data;
  settle();
  Activation y = allocate(x.rows(), x.cols());
  const Norm norm{&buffer(x),
                  &factors,
                  &buffer(y),
                  x.rows() * (x.cols() / weight.cols),
                  gpu::as_int(weight.cols),
                  eps};
  if (fuses(x.rows()) && norm.n_runs == 1 && weight.cols <= kMostNormed) {
    waiting_.norm = norm;
  } else {
    launch_norm(norm);
  }
  return y;
}

void GpuExecutor::launch_norm(const Norm& norm) {
  launch(*ops_.rms_norm, {norm.n_runs, 1, kRmsItems}, *norm.x, *norm.weight, *norm.y, norm.cols,
         norm.eps);
}

Activation GpuExecutor::layer_norm(const Activation& x, const Weight& weight, const Weight& bias,
                                   float eps) {
  check_vector("layer_norm", weight, x.cols());
  if (bias) check_vector("layer_norm", bias, x.cols());
  const gpu::Buffer& scale = *this->weight(weight).data;
  const gpu::Buffer& shift = bias ? *this->weight(bias).data : scale;
  Activation y = allocate(x.rows(), x.cols());
  launch(*ops_.layer_norm, {x.rows(), 1, kItems}, buffer(x), scale, shift, bias ? 1 : 0, buffer(y),
         gpu::as_int(x.cols()), eps);
  return y;
}

}  // namespace limpid
