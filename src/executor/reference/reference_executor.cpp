#include "executor/reference/reference_executor.h"

#include <algorithm>
#include <cmath>

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

uint64_t ReferenceExecutor::rope_bytes(int64_t n_rot, int64_t n_positions) const {
  return tensor_bytes(DType::kF64, Shape{n_positions, n_rot});
}

RopeTable ReferenceExecutor::load_rope(std::span<const double> inverse_frequencies,
                                       int64_t n_positions) {
  RopeTableData table{n_positions, {}, {}};
  const auto n_angles =
      static_cast<size_t>(Shape{n_positions, std::ssize(inverse_frequencies)}.n_elements());
  table.cos.reserve(n_angles);
  table.sin.reserve(n_angles);
  for (int64_t p = 0; p < n_positions; ++p) {
    for (const double frequency : inverse_frequencies) {
      const double angle = static_cast<double>(p) * frequency;
      table.cos.push_back(std::cos(angle));
      table.sin.push_back(std::sin(angle));
    }
  }
  rope_tables_.push_back(std::move(table));
  return {static_cast<int32_t>(rope_tables_.size() - 1),
          2 * static_cast<int64_t>(inverse_frequencies.size())};
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
