// Weights, activations and steps of the CPU executor; its ops have files of their own.
//
// Where a weight lies after load_weight:
//   a vector (norm, bias)                  decoded to f32, in half-split order
//   a matrix of a quantised type           packed (packed_weight.h), a copy; with stays_in_file in
//                                          the file's map, and each step packs its rows again
//   a matrix of F32, F16 or BF16           in the file's map, not copied
//   a matrix of another plain type         decoded to f32
//   an embedding table                     in the file's map; `embed` decodes the rows it needs
// A tied embedding of a quantised type is packed for the head and stays in the map for `embed`.
#include "executor/cpu/cpu_executor.h"

#include <algorithm>

#include "base/divide_up.h"
#include "base/system_limits.h"
#include "executor/check_shapes.h"
#include "executor/cpu/cpu_gradients.h"
#include "tensor/codec.h"

namespace limpid {
namespace {

// Activations that `linear` needs besides its results: its input quantised, packed, and packed for
// products of bf16.
constexpr int64_t kLinearCopies = 3;

// Of the copy that `linear` makes of its input [n_tokens, cols]. One token of f32 is read where it
// lies.
uint64_t copy_bytes(int64_t n_tokens, int64_t cols, bool is_quantized, DType products) {
  if (cols == 0) return 0;
  if (is_quantized) return static_cast<uint64_t>(quantized_activations_bytes(n_tokens, cols));
  if (n_tokens == 1 && products == DType::kF32) return 0;
  return static_cast<uint64_t>(packed_tokens_floats(products, n_tokens, cols)) * sizeof(float);
}

// Half of a core's second-level cache, which holds the tokens too: a quarter of a MiB to a MiB.
// With more, the tokens are read fewer times for rows of 8,192 floats: where a core has 2 MiB
// (Intel Xeon, Emerald Rapids), a prompt's products with them are 1.18 times as fast with one MiB
// as with half of one. Where a core has half a MiB (AMD Zen 1), a quarter is 1.05 times as fast as
// half.
int64_t linear_scratch_floats() {
  constexpr int64_t kLeast = 1 << 16, kMost = 1 << 18;
  return std::clamp(second_level_cache() / 2 / static_cast<int64_t>(sizeof(float)), kLeast, kMost);
}

}  // namespace

CpuExecutor::CpuExecutor(const ExecutorOptions& options)
    : isa_(choose_isa(options.isa)),
      kernels_(*isa_.kernels),
      products_(options.products == "bf16" ? DType::kBF16 : DType::kF32),
      pool_(options.n_threads),
      linear_scratch_floats_(linear_scratch_floats()),
      linear_scratch_(static_cast<uint64_t>(pool_.size() * linear_scratch_floats_) * sizeof(float)),
      gradients_(std::make_unique<CpuGradients>(*this)) {}

CpuExecutor::~CpuExecutor() = default;

std::unique_ptr<Executor> make_cpu_executor(const ExecutorOptions& options) {
  return std::make_unique<CpuExecutor>(options);
}

// ---- loading ------------------------------------------------------------------------------------

// Vectors, which are small, count as nothing.
uint64_t CpuExecutor::weight_bytes(const WeightSource& source) const {
  const TensorView& tensor = source.tensor;
  if (!is_matrix(source.use)) return 0;
  if (is_quantized(tensor.dtype))
    return source.stays_in_file ? 0 : PackedWeight::packed_bytes(tensor);
  return is_plain_float(tensor.dtype) ? 0 : tensor_bytes(DType::kF32, tensor.shape);
}

Weight CpuExecutor::load_weight(const WeightSource& source) {
  const TensorView& tensor = source.tensor;
  LoadedWeight loaded{source};
  if (source.use == WeightUse::kVector) {
    loaded.vector = decode_vector(source);
    weights_.push_back(std::move(loaded));
    return {static_cast<int32_t>(weights_.size() - 1), 1, tensor.shape.n_elements()};
  }
  check_heads(source);
  loaded.rows = StoredRows(source);
  if (is_matrix(source.use) && is_quantized(tensor.dtype) && source.stays_in_file) {
    const auto n_bytes = static_cast<uint64_t>(packed_group_bytes(tensor) * pool_.size());
    if (packing_scratch_.size() < n_bytes) packing_scratch_ = AlignedBuffer(n_bytes);
  } else if (is_matrix(source.use) && is_quantized(tensor.dtype)) {
    loaded.packed = PackedWeight(tensor, source.row_order, source.head_dim, pool_);
  } else if (is_matrix(source.use) && !is_plain_float(tensor.dtype)) {
    const auto cols = static_cast<size_t>(tensor.shape.cols());
    loaded.decoded = Tensor(DType::kF32, tensor.shape);
    for (int64_t row = 0; row < tensor.shape.rows(); ++row) {
      decode_row(tensor.dtype, loaded.rows.row(row),
                 loaded.decoded.f32().subspan(static_cast<size_t>(row) * cols, cols));
    }
    loaded.tensor = loaded.decoded;
    loaded.rows = StoredRows(loaded.tensor);
  }
  weights_.push_back(std::move(loaded));
  widest_ = std::max(widest_, tensor.shape.cols());
  if (source.use == WeightUse::kProjection) widest_ = std::max(widest_, tensor.shape.rows());
  if (is_head(source.use)) widest_head_ = std::max(widest_head_, tensor.shape.rows());
  return {static_cast<int32_t>(weights_.size() - 1), tensor.shape.rows(), tensor.shape.cols()};
}

RopeTable CpuExecutor::load_rope(std::span<const double> inverse_frequencies, int64_t n_positions) {
  rope_tables_.emplace_back(inverse_frequencies, n_positions);
  return {static_cast<int32_t>(rope_tables_.size() - 1),
          2 * static_cast<int64_t>(inverse_frequencies.size())};
}

void CpuExecutor::reserve(int64_t max_tokens, int64_t max_outputs) {
  const auto floats = [](int64_t rows, int64_t cols) {
    return tensor_bytes(DType::kF32, Shape{rows, cols});
  };
  // Rounded up to the number of columns that kernels pad to, so that their copies fit too.
  const int64_t cols = divide_up(widest_, kScaleBlock) * kScaleBlock;
  const auto quantized = static_cast<uint64_t>(quantized_activations_bytes(max_tokens, cols));
  arena_.reserve(kMostActivations + kLinearCopies, std::max(floats(max_tokens, cols), quantized),
                 floats(max_outputs, widest_head_));
}

// Address space is set aside for more (activation_arena.h); this is what a step takes of it.
uint64_t CpuExecutor::step_bytes(const StepSize& size) const {
  uint64_t most = Executor::step_bytes(size);
  for (const StepSize::Moment& moment : size.moments) {
    const uint64_t alive = tensor_bytes(DType::kF32, Shape{size.n_tokens, moment.of_tokens});
    most = std::max(most,
                    alive + copy_bytes(size.n_tokens, moment.input, size.is_quantized, products_));
  }
  return most;
}

void CpuExecutor::begin_step() {
  token_tiles_.reserve(inputs_.token_ids.size());
  if (inputs_.positions.empty()) return;
  const int64_t last = std::ranges::max(inputs_.positions);
  for (RopeAngles& table : rope_tables_)
    table.compute_to(std::min(last, table.n_positions() - 1));  // `rope` refuses what lies beyond
}

float* CpuExecutor::linear_scratch(int thread) {
  return linear_scratch_.as<float>().data() + thread * linear_scratch_floats_;
}

// ---- activations --------------------------------------------------------------------------------

Activation CpuExecutor::allocate(int64_t n_rows, int64_t n_cols) {
  return {this, arena_.take(n_rows * n_cols), n_rows, n_cols};
}

void CpuExecutor::read(const Activation& x, std::span<float> out) {
  check_elements("read", out.size(), x.rows(), x.cols());
  std::copy_n(data(x), out.size(), out.begin());
}

Activation CpuExecutor::write(std::span<const float> values, int64_t rows, int64_t cols) {
  check_elements("write", values.size(), rows, cols);
  constexpr int64_t kCopiedAtOnce = 1 << 14;
  Activation x = allocate(rows, cols);
  pool_.for_ranges(rows * cols, kCopiedAtOnce, [&](int64_t begin, int64_t end, int /*thread*/) {
    std::copy(values.begin() + begin, values.begin() + end, data(x) + begin);
  });
  return x;
}

}  // namespace limpid
