#include "executor/cpu/cpu_executor.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "tensor/codec.h"

namespace limpid {
namespace {

// Elements from which on a simple op is worth waking the threads.
constexpr int64_t kElementsPerThread = 8192;

// What `linear` takes besides its results: its input quantised, and packed.
constexpr int64_t kLinearCopies = 2;

bool all_within(std::span<const int32_t> ids, int64_t n) {
  return std::ranges::all_of(ids, [n](int32_t id) { return id >= 0 && id < n; });
}

}  // namespace

CpuExecutor::CpuExecutor(const ExecutorOptions& options)
    : isa_(choose_isa(options.isa)),
      kernels_(*isa_.kernels),
      quantized_kernels_(*isa_.quantized),
      pool_(options.n_threads),
      linear_scratch_(static_cast<uint64_t>(pool_.size()) * kLinearScratch * sizeof(float)) {}

std::unique_ptr<Executor> make_cpu_executor(const ExecutorOptions& options) {
  return std::make_unique<CpuExecutor>(options);
}

// ---- loading ------------------------------------------------------------------------------------

Weight CpuExecutor::load_weight(const WeightSource& source) {
  const TensorView& tensor = source.tensor;
  const bool paired = source.row_order == RowOrder::kInterleavedPairs;
  LIMPID_CHECK(ShapeError,
               !paired || source.use == WeightUse::kVector ||
                   (source.head_dim > 0 && source.head_dim % 2 == 0 &&
                    tensor.shape.rows() % source.head_dim == 0),
               "{}: {} rows are not whole heads of {}", source.name, tensor.shape.rows(),
               source.head_dim);
  LoadedWeight loaded{source.name, source.use, tensor, {},
                      {},          {},         {},     paired ? source.head_dim : 0};
  if (source.use == WeightUse::kVector) {
    loaded.vector = decode_vector(source);
    weights_.push_back(std::move(loaded));
    return {static_cast<int32_t>(weights_.size() - 1), 1, tensor.shape.n_elements()};
  }
  loaded.rows = StoredRows(source);
  const bool is_float =
      tensor.dtype == DType::kF32 || tensor.dtype == DType::kF16 || tensor.dtype == DType::kBF16;
  if (is_matrix(source.use) && is_quantized(tensor.dtype)) {
    loaded.packed = PackedWeight(tensor, source.row_order, source.head_dim, &pool_);
  } else if (is_matrix(source.use) && !is_float) {
    loaded.decoded = Tensor::of(tensor.shape, decode(tensor));
    loaded.tensor = loaded.decoded;
    loaded.rows = StoredRows(loaded.tensor);
  }
  weights_.push_back(std::move(loaded));
  widest_ = std::max(widest_, tensor.shape.cols());
  if (source.use == WeightUse::kProjection) widest_ = std::max(widest_, tensor.shape.rows());
  if (is_head(source.use)) widest_head_ = std::max(widest_head_, tensor.shape.rows());
  return {static_cast<int32_t>(weights_.size() - 1), tensor.shape.rows(), tensor.shape.cols()};
}

RopeTable CpuExecutor::load_rope(std::span<const double> inverse_frequencies, int64_t n_positions,
                                 double magnitude) {
  rope_tables_.emplace_back(inverse_frequencies, n_positions, magnitude);
  return {static_cast<int32_t>(rope_tables_.size() - 1),
          2 * static_cast<int64_t>(inverse_frequencies.size())};
}

void CpuExecutor::reserve(int64_t max_tokens, int64_t max_outputs) {
  const auto floats = [](int64_t rows, int64_t cols) {
    return tensor_bytes(DType::kF32, Shape{rows, cols});
  };
  // A multiple of what the kernels pad columns to, so that copies for them are as large at most.
  const int64_t cols = (widest_ + kScaleBlock - 1) / kScaleBlock * kScaleBlock;
  const auto quantized = static_cast<uint64_t>(quantized_activations_bytes(max_tokens, cols));
  arena_.reserve(kMostActivations + kLinearCopies, std::max(floats(max_tokens, cols), quantized),
                 floats(max_outputs, widest_head_));
}

void CpuExecutor::begin_step() {
  token_tiles_.reserve(inputs_.token_ids.size());
  if (inputs_.positions.empty()) return;
  const int64_t last = std::ranges::max(inputs_.positions);
  for (RopeAngles& table : rope_tables_)
    table.compute_to(std::min(last, table.n_positions() - 1));  // `rope` refuses what lies beyond
}

float* CpuExecutor::linear_scratch(int thread) {
  return linear_scratch_.as<float>().data() + thread * kLinearScratch;
}

// ---- activations --------------------------------------------------------------------------------

Activation CpuExecutor::allocate(int64_t n_rows, int64_t n_cols) {
  return {this, arena_.take(n_rows * n_cols), n_rows, n_cols};
}

void CpuExecutor::read(const Activation& x, std::span<float> out) {
  LIMPID_CHECK(ShapeError, static_cast<int64_t>(out.size()) == x.rows() * x.cols(),
               "[read] {} elements for [{}, {}]", out.size(), x.rows(), x.cols());
  std::copy_n(data(x), out.size(), out.begin());
}

const CpuExecutor::LoadedWeight& CpuExecutor::vector_weight(const Weight& handle, int64_t cols,
                                                            std::string_view op) const {
  LIMPID_CHECK(ShapeError, handle.cols == cols, "[{}] weight [{}] for {} columns", op, handle.cols,
               cols);
  return weights_[static_cast<size_t>(handle.id)];
}

// ---- ops on rows and elements -------------------------------------------------------------------

Activation CpuExecutor::look_up(const Weight& table, std::span<const int32_t> ids,
                                std::string_view op) {
  LIMPID_CHECK(ShapeError, all_within(ids, table.rows),
               "[{}] an index is outside the {} rows of {}", op, table.rows,
               weights_[static_cast<size_t>(table.id)].name);
  const LoadedWeight& weight = weights_[static_cast<size_t>(table.id)];
  Activation y = allocate(static_cast<int64_t>(ids.size()), table.cols);
  float* out = data(y);
  pool_.for_ranges(y.rows(), std::max<int64_t>(1, kElementsPerThread / table.cols),
                   [&](int64_t begin, int64_t end, int) {
                     for (int64_t t = begin; t < end; ++t) {
                       decode_row(weight.tensor.dtype, weight.rows.row(ids[static_cast<size_t>(t)]),
                                  {out + t * table.cols, static_cast<size_t>(table.cols)});
                     }
                   });
  return y;
}

Activation CpuExecutor::embed(const Weight& table) {
  return look_up(table, inputs_.token_ids, "embed");
}

Activation CpuExecutor::embed_positions(const Weight& table) {
  return look_up(table, inputs_.positions, "embed_positions");
}

Activation CpuExecutor::add(const Activation& a, const Activation& b) {
  LIMPID_CHECK(ShapeError, a.rows() == b.rows() && a.cols() == b.cols(),
               "[add] [{}, {}] and [{}, {}]", a.rows(), a.cols(), b.rows(), b.cols());
  Activation y = allocate(a.rows(), a.cols());
  pool_.for_ranges(
      a.rows() * a.cols(), kElementsPerThread,
      [p = data(a), q = data(b), out = data(y), this](int64_t begin, int64_t end, int) {
        kernels_.add(p + begin, q + begin, end - begin, out + begin);
      });
  return y;
}

Activation CpuExecutor::scale(const Activation& x, float factor) {
  Activation y = allocate(x.rows(), x.cols());
  pool_.for_ranges(x.rows() * x.cols(), kElementsPerThread,
                   [p = data(x), out = data(y), factor, this](int64_t begin, int64_t end, int) {
                     kernels_.scale(p + begin, factor, end - begin, out + begin);
                   });
  return y;
}

Activation CpuExecutor::unary(UnaryKind kind, const Activation& x) {
  static_assert(
      static_cast<int>(UnaryFunction::kSilu) == static_cast<int>(UnaryKind::kSilu) &&
      static_cast<int>(UnaryFunction::kGeluTanh) == static_cast<int>(UnaryKind::kGeluTanh) &&
      static_cast<int>(UnaryFunction::kGeluErf) == static_cast<int>(UnaryKind::kGeluErf) &&
      static_cast<int>(UnaryFunction::kRelu) == static_cast<int>(UnaryKind::kRelu));
  Activation y = allocate(x.rows(), x.cols());
  const auto function = kernels_.unary[static_cast<int>(kind)];
  pool_.for_ranges(x.rows() * x.cols(), kElementsPerThread,
                   [p = data(x), out = data(y), function](int64_t begin, int64_t end, int) {
                     function(p + begin, end - begin, out + begin);
                   });
  return y;
}

Activation CpuExecutor::swiglu(const Activation& gate, const Activation& up) {
  LIMPID_CHECK(ShapeError, gate.rows() == up.rows() && gate.cols() == up.cols(),
               "[swiglu] [{}, {}] and [{}, {}]", gate.rows(), gate.cols(), up.rows(), up.cols());
  Activation y = allocate(gate.rows(), gate.cols());
  pool_.for_ranges(
      gate.rows() * gate.cols(), kElementsPerThread,
      [p = data(gate), q = data(up), out = data(y), this](int64_t begin, int64_t end, int) {
        kernels_.swiglu(p + begin, q + begin, end - begin, out + begin);
      });
  return y;
}

Activation CpuExecutor::rms_norm(const Activation& x, const Weight& weight, float eps) {
  LIMPID_CHECK(ShapeError, weight.cols > 0 && x.cols() % weight.cols == 0,
               "[rms_norm] weight [{}], x [{}, {}]", weight.cols, x.rows(), x.cols());
  const int64_t cols = weight.cols;
  const float* w = vector_weight(weight, cols, "rms_norm").vector.data();
  Activation y = allocate(x.rows(), x.cols());
  pool_.for_ranges(x.rows() * x.cols() / cols, std::max<int64_t>(1, kElementsPerThread / cols),
                   [&, in = data(x), out = data(y)](int64_t begin, int64_t end, int) {
                     kernels_.rms_norm(in + begin * cols, w, end - begin, cols, eps,
                                       out + begin * cols);
                   });
  return y;
}

Activation CpuExecutor::layer_norm(const Activation& x, const Weight& weight, const Weight& bias,
                                   float eps) {
  const int64_t cols = x.cols();
  const float* w = vector_weight(weight, cols, "layer_norm").vector.data();
  const float* b = bias ? vector_weight(bias, cols, "layer_norm").vector.data() : nullptr;
  Activation y = allocate(x.rows(), cols);
  pool_.for_ranges(x.rows(), std::max<int64_t>(1, kElementsPerThread / cols),
                   [&, in = data(x), out = data(y)](int64_t begin, int64_t end, int) {
                     kernels_.layer_norm(in + begin * cols, w, b, end - begin, cols, eps,
                                         out + begin * cols);
                   });
  return y;
}

Activation CpuExecutor::rope(const Activation& x, const RopeTable& table, int64_t head_dim) {
  const RopeAngles& angles = rope_tables_[static_cast<size_t>(table.id)];
  LIMPID_CHECK(ShapeError, head_dim > 0 && x.cols() % head_dim == 0 && table.n_rot <= head_dim,
               "[rope] {} columns, heads of {}, {} rotated", x.cols(), head_dim, table.n_rot);
  LIMPID_CHECK(ShapeError, all_within(inputs_.positions, angles.n_positions()),
               "[rope] a position is outside the {} of the table", angles.n_positions());
  LIMPID_CHECK(ShapeError, x.rows() == inputs_.n_tokens(), "[rope] {} rows for {} tokens", x.rows(),
               inputs_.n_tokens());
  Activation y = allocate(x.rows(), x.cols());
  pool_.for_ranges(x.rows(), std::max<int64_t>(1, kElementsPerThread / x.cols()),
                   [&, in = data(x), out = data(y)](int64_t begin, int64_t end, int) {
                     for (int64_t t = begin; t < end; ++t) {
                       const int64_t position = inputs_.positions[static_cast<size_t>(t)];
                       kernels_.rope(in + t * x.cols(), angles.cosines(position),
                                     angles.sines(position), x.cols() / head_dim, head_dim,
                                     table.n_rot, out + t * x.cols());
                     }
                   });
  return y;
}

Activation CpuExecutor::select_outputs(const Activation& x) {
  LIMPID_CHECK(ShapeError, all_within(inputs_.output_rows, x.rows()),
               "[select_outputs] a row is outside the {} of x", x.rows());
  Activation y = allocate(inputs_.n_outputs(), x.cols());
  for (int64_t i = 0; i < y.rows(); ++i) {
    std::copy_n(data(x) + inputs_.output_rows[static_cast<size_t>(i)] * x.cols(), x.cols(),
                data(y) + i * x.cols());
  }
  return y;
}

}  // namespace limpid
