#include "executor/reference/reference_executor.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "tensor/codec.h"

namespace limpid {

ReferenceExecutor::ReferenceExecutor(const ExecutorOptions& options,
                                     std::pmr::memory_resource* memory)
    : pool_(options.n_threads), memory_(memory) {}

std::unique_ptr<Executor> make_reference_executor(const ExecutorOptions& options) {
  return std::make_unique<ReferenceExecutor>(options);
}

// ---- loading ------------------------------------------------------------------------------------

Weight ReferenceExecutor::load_weight(const WeightSource& source) {
  const auto id = static_cast<int32_t>(weights_.size());
  weights_.push_back({source, StoredRows(source), {}});
  if (source.use == WeightUse::kVector) weights_.back().vector = decode_vector(source);
  return {id, source.tensor.shape.rows(), source.tensor.shape.cols()};
}

RopeTable ReferenceExecutor::load_rope(std::span<const double> inverse_frequencies,
                                       int64_t n_positions, double magnitude) {
  RopeTableData table;
  table.n_positions = n_positions;
  for (int64_t p = 0; p < n_positions; ++p) {
    for (const double frequency : inverse_frequencies) {
      const double angle = static_cast<double>(p) * frequency;
      table.cos.push_back(std::cos(angle) * magnitude);
      table.sin.push_back(std::sin(angle) * magnitude);
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

reference::ConstRows ReferenceExecutor::rows(const Activation& x) const {
  return {buffers_[x.id()].values.data(), x.rows(), x.cols()};
}

std::span<const float> ReferenceExecutor::vector(const Weight& handle) const {
  if (!handle) return {};
  return weights_[handle.id].vector;
}

void ReferenceExecutor::read(const Activation& x, std::span<float> out) {
  const auto source = rows(x);
  std::copy_n(source.data, source.n_rows * source.n_cols, out.begin());
}

// ---- ops ----------------------------------------------------------------------------------------

Activation ReferenceExecutor::look_up(const Weight& table, std::span<const int32_t> ids) {
  Activation y = allocate(static_cast<int64_t>(ids.size()), table.cols);
  const LoadedWeight& weight = weights_[table.id];
  for (size_t t = 0; t < ids.size(); ++t)
    decode_row(weight.source.tensor.dtype, weight.rows.row(ids[t]),
               rows(y)[static_cast<int64_t>(t)]);
  return y;
}

Activation ReferenceExecutor::embed(const Weight& table) {
  return look_up(table, inputs_.token_ids);
}

Activation ReferenceExecutor::embed_positions(const Weight& table) {
  return look_up(table, inputs_.positions);
}

Activation ReferenceExecutor::add(const Activation& a, const Activation& b) {
  LIMPID_CHECK(ShapeError, a.rows() == b.rows() && a.cols() == b.cols(),
               "[add] [{}, {}] and [{}, {}]", a.rows(), a.cols(), b.rows(), b.cols());
  Activation y = allocate(a.rows(), a.cols());
  const int64_t n = a.rows() * a.cols();
  for (int64_t i = 0; i < n; ++i) rows(y).data[i] = rows(a).data[i] + rows(b).data[i];
  return y;
}

Activation ReferenceExecutor::scale(const Activation& x, float factor) {
  Activation y = allocate(x.rows(), x.cols());
  for (int64_t i = 0; i < x.rows() * x.cols(); ++i) rows(y).data[i] = rows(x).data[i] * factor;
  return y;
}

Activation ReferenceExecutor::rms_norm(const Activation& x, const Weight& weight, float eps) {
  LIMPID_CHECK(ShapeError, weight.cols > 0 && x.cols() % weight.cols == 0,
               "[rms_norm] weight [{}], x [{}, {}]", weight.cols, x.rows(), x.cols());
  Activation y = allocate(x.rows(), x.cols());
  for (int64_t t = 0; t < x.rows(); ++t) {
    for (int64_t g = 0; g < x.cols(); g += weight.cols) {
      reference::rms_norm(rows(x)[t].subspan(g, weight.cols), vector(weight), eps,
                          rows(y)[t].subspan(g, weight.cols));
    }
  }
  return y;
}

Activation ReferenceExecutor::layer_norm(const Activation& x, const Weight& weight,
                                         const Weight& bias, float eps) {
  LIMPID_CHECK(ShapeError, weight.cols == x.cols(), "[layer_norm] weight [{}], x [{}, {}]",
               weight.cols, x.rows(), x.cols());
  Activation y = allocate(x.rows(), x.cols());
  for (int64_t t = 0; t < x.rows(); ++t) {
    reference::layer_norm(rows(x)[t], vector(weight), vector(bias), eps, rows(y)[t]);
  }
  return y;
}

void ReferenceExecutor::linear(const Activation& x, std::span<Projection> projections) {
  for (Projection& p : projections) {
    LIMPID_CHECK(ShapeError, p.weight.cols == x.cols(), "[linear] weight [{}, {}], x [{}, {}]",
                 p.weight.rows, p.weight.cols, x.rows(), x.cols());
    p.y = allocate(x.rows(), p.weight.rows);
    const ReferenceExecutor& self = *this;
    reference::linear(self.rows(x), weights_[p.weight.id].source, vector(p.bias), rows(p.y), pool_);
  }
}

Activation ReferenceExecutor::rope(const Activation& x, const RopeTable& table, int64_t head_dim) {
  const RopeTableData& angles = rope_tables_[table.id];
  const auto half = static_cast<size_t>(table.n_rot / 2);
  Activation y = allocate(x.rows(), x.cols());
  for (int64_t t = 0; t < x.rows(); ++t) {
    const size_t at = static_cast<size_t>(inputs_.positions[t]) * half;
    const std::span cos(angles.cos.data() + at, half);
    const std::span sin(angles.sin.data() + at, half);
    for (int64_t h = 0; h < x.cols(); h += head_dim) {
      reference::rotate(rows(x)[t].subspan(h, head_dim), cos, sin, rows(y)[t].subspan(h, head_dim));
    }
  }
  return y;
}

Activation ReferenceExecutor::swiglu(const Activation& gate, const Activation& up) {
  Activation y = allocate(gate.rows(), gate.cols());
  for (int64_t i = 0; i < gate.rows() * gate.cols(); ++i) {
    rows(y).data[i] = reference::unary(UnaryKind::kSilu, rows(gate).data[i]) * rows(up).data[i];
  }
  return y;
}

Activation ReferenceExecutor::unary(UnaryKind kind, const Activation& x) {
  Activation y = allocate(x.rows(), x.cols());
  for (int64_t i = 0; i < x.rows() * x.cols(); ++i)
    rows(y).data[i] = reference::unary(kind, rows(x).data[i]);
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
