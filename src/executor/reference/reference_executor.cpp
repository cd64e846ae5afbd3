#include "executor/reference/reference_executor.h"

#include <algorithm>
#include <iterator>

#include "executor/check_shapes.h"
#include "executor/reference/reference_gradients.h"

namespace limpid {

ReferenceExecutor::ReferenceExecutor(const ExecutorOptions& options,
                                     std::pmr::memory_resource* memory)
    : pool_(options.n_threads),
      memory_(memory),
      gradients_(std::make_unique<ReferenceGradients>(*this)) {}

ReferenceExecutor::~ReferenceExecutor() = default;

std::unique_ptr<Executor> make_reference_executor(const ExecutorOptions& options) {
  return std::make_unique<ReferenceExecutor>(options);
}

// ---- loading ------------------------------------------------------------------------------------

Weight ReferenceExecutor::load_weight(const WeightSource& source) {
  const auto id = static_cast<int32_t>(weights_.size());
  if (source.use != WeightUse::kVector) check_heads(source);
  weights_.push_back({source, StoredRows(source), {}});
  if (source.use == WeightUse::kVector) weights_.back().vector = decode_vector(source);
  return {id, source.tensor.shape.rows(), source.tensor.shape.cols()};
}

RopeTable ReferenceExecutor::load_rope(std::span<const double> inverse_frequencies,
                                       int64_t n_positions) {
  rope_tables_.push_back({n_positions, {inverse_frequencies.begin(), inverse_frequencies.end()}});
  return {static_cast<int32_t>(rope_tables_.size() - 1), 2 * std::ssize(inverse_frequencies)};
}

// ---- activations --------------------------------------------------------------------------------

Activation ReferenceExecutor::allocate(int64_t n_rows, int64_t n_cols) {
  const auto size = static_cast<size_t>(n_rows * n_cols);
  const auto usable = [&](const Buffer& buffer) {
    return buffer.free && buffer.values.size() >= size;
  };
  auto found = std::ranges::find_if(buffers_, usable);
  if (found == buffers_.end()) {
    buffers_.push_back({std::pmr::vector<float>(size, 0.0F, memory_), true});
    found = buffers_.end() - 1;
  }
  found->free = false;
  return {this, static_cast<int32_t>(found - buffers_.begin()), n_rows, n_cols};
}

void ReferenceExecutor::release(int32_t id) noexcept { buffers_[id].free = true; }

reference::Rows ReferenceExecutor::rows(const Activation& x) {
  return {buffers_[x.id()].values.data(), x.rows(), x.cols()};
}

std::span<const float> ReferenceExecutor::vector(const Weight& handle) const {
  if (!handle) return {};
  return weights_[handle.id].vector;
}

void ReferenceExecutor::read(const Activation& x, std::span<float> out) {
  check_elements("read", out.size(), x.rows(), x.cols());
  const auto source = rows(x);
  std::copy_n(source.data, source.n_rows * source.n_cols, out.begin());
}

Activation ReferenceExecutor::write(std::span<const float> values, int64_t rows, int64_t cols) {
  check_elements("write", values.size(), rows, cols);
  Activation x = allocate(rows, cols);
  std::ranges::copy(values, this->rows(x).data);
  return x;
}

}  // namespace limpid
