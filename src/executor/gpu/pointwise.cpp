// Ops on elements: each result depends on the same element of the operands only.
#include "executor/check_shapes.h"
#include "executor/gpu/gpu_executor.h"

namespace limpid {
namespace {

constexpr int kItems = 128;  // of a group, as in kernels/pointwise.cl.h

// Groups whose items compute 4 of n elements each.
gpu::Grid cover_quads(int64_t n) { return gpu::cover((n + 3) / 4, kItems); }

}  // namespace

Activation GpuExecutor::add(const Activation& a, const Activation& b) {
  check_same_shape("add", a, b);
  Activation y = allocate(a.rows(), a.cols());
  const bool a_waits = waiting_.has(&buffer(a));
  if (const auto product = a_waits ? std::nullopt : take_product({&buffer(b)}); product) {
    launch_product(*product, &buffer(a), &buffer(y));
    return y;
  }
  const int64_t n = a.rows() * a.cols();
  launch(*ops_.add, cover_quads(n), buffer(a), buffer(b), buffer(y), n);
  return y;
}

Activation GpuExecutor::scale(const Activation& x, float factor) {
  Activation y = allocate(x.rows(), x.cols());
  const int64_t n = x.rows() * x.cols();
  launch(*ops_.scale, cover_quads(n), buffer(x), factor, buffer(y), n);
  return y;
}

Activation GpuExecutor::unary(UnaryKind kind, const Activation& x) {
  Activation y = allocate(x.rows(), x.cols());
  const int64_t n = x.rows() * x.cols();
  launch(*ops_.unary, cover_quads(n), static_cast<int32_t>(kind), buffer(x), buffer(y), n);
  return y;
}

Activation GpuExecutor::swiglu(const Activation& gate, const Activation& up) {
  check_same_shape("swiglu", gate, up);
  Activation y = allocate(gate.rows(), gate.cols());
  if (const auto product = take_product({&buffer(gate), &buffer(up)}); product) {
    launch_gated(*product, buffer(y));
    return y;
  }
  const int64_t n = gate.rows() * gate.cols();
  launch(*ops_.swiglu, cover_quads(n), buffer(gate), buffer(up), buffer(y), n);
  return y;
}

}  // namespace limpid
