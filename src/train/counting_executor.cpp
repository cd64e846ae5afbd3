// A formula for the memory would describe the model a second time, and would be wrong after the
// next change of the model. Here the real decoder and the real tape run, on values without numbers.
// Two quantities are counted:
//
//   memory      allocate() adds rows * cols * 4 bytes, and the end of a handle subtracts them. The
//               largest sum so far is what a step needs at one time.
//   operations  y = x W^T with x [n, k] and W [m, k] takes n m k multiplications and n m k
//               additions. The backward pass has two such products: dx = dy W and dW = dy^T x.
//
// Most results have the shape of the first operand, so the lists of ops make most methods.
#include "train/counting_executor.h"

#include <algorithm>

#include "base/check.h"
#include "base/checked.h"

namespace limpid {
namespace {

// Rows of the head's input whose logits exist at one time, as in the CPU executor.
constexpr int64_t kLossRows = 256;

}  // namespace

class CountingGradients final : public GradientOps {
 public:
  explicit CountingGradients(CountingExecutor& executor) : ex_(executor) {}

  void keep_gradient(const Weight& weight, std::span<float> /*gradient*/) override {
    ex_.weight_learns_.at(static_cast<size_t>(weight.id)) = 1;
  }
  bool keeps_gradient(const Weight& weight) const override {
    return weight && ex_.weight_learns_.at(static_cast<size_t>(weight.id)) != 0;
  }
  void begin_gradients() override {}
  void finish_gradients() override {}
  void refresh(const Weight& /*weight*/) override {}

#define LIMPID_GRADIENT_OP(result, name, parameters, arguments) result name parameters override;
#include "executor/gradient_op_list.h"

 private:
  void count_dweight(const Activation& x, const Weight& weight) {
    if (keeps_gradient(weight)) ex_.count_product(x, weight);
  }

  CountingExecutor& ex_;
};

CountingExecutor::CountingExecutor(int64_t n_tokens,
                                   std::function<bool(std::string_view name)> learns)
    : n_tokens_(n_tokens),
      learns_(std::move(learns)),
      gradients_(std::make_unique<CountingGradients>(*this)) {}

Weight CountingExecutor::load_weight(const WeightSource& source) {
  const Shape& shape = source.tensor.shape;
  weight_learns_.push_back(!learns_ || learns_(source.name) ? 1 : 0);
  return {static_cast<int32_t>(std::ssize(weight_learns_)) - 1,
          source.use == WeightUse::kVector ? 1 : shape.rows(), shape.cols()};
}

RopeTable CountingExecutor::load_rope(std::span<const double> inverse_frequencies,
                                      int64_t /*n_positions*/) {
  return {0, 2 * std::ssize(inverse_frequencies)};
}

std::unique_ptr<KvStorage> CountingExecutor::allocate_kv(const KvLayout& layout) {
  return std::make_unique<KvStorage>(layout);
}

void CountingExecutor::read(const Activation& /*x*/, std::span<float> /*out*/) {
  throw UnsupportedError("the counting executor has no values to read");
}

void CountingExecutor::release(int32_t id) noexcept {
  alive_bytes_ -= bytes_[static_cast<size_t>(id)];
}

Activation CountingExecutor::allocate(int64_t rows, int64_t cols) {
  const auto n = checked_mul(static_cast<uint64_t>(rows), static_cast<uint64_t>(cols));
  const auto bytes = n ? checked_mul(*n, uint64_t{sizeof(float)}) : n;
  const auto alive = bytes ? checked_add(alive_bytes_, *bytes) : bytes;
  LIMPID_CHECK(ResourceError, alive.has_value(),
               "the activations of {} tokens need more than 2^64 bytes", n_tokens_);
  alive_bytes_ = *alive;
  most_bytes_ = std::max(most_bytes_, alive_bytes_);
  bytes_.push_back(*bytes);
  return {this, static_cast<int32_t>(std::ssize(bytes_)) - 1, rows, cols};
}

void CountingExecutor::count_product(const Activation& x, const Weight& weight) {
  operations_ += 2.0 * static_cast<double>(x.rows()) * static_cast<double>(weight.rows) *
                 static_cast<double>(weight.cols);
}

// ---- ops ----------------------------------------------------------------------------------------

#define LIMPID_SPECIAL_OP(...)
#define LIMPID_TABLE_OP LIMPID_OP
#define LIMPID_OP(result, name, parameters, arguments) \
  result CountingExecutor::name parameters { return like arguments; }
#include "executor/op_list.h"

void CountingExecutor::linear(const Activation& x, std::span<Projection> projections) {
  for (Projection& p : projections) {
    p.y = allocate(x.rows(), p.weight.rows);
    count_product(x, p.weight);
  }
}

Activation CountingExecutor::attention(const Activation& q, const Activation& /*k*/,
                                       const Activation& /*v*/, KvStorage& /*kv*/,
                                       int64_t /*layer*/, const AttentionShape& /*shape*/) {
  return like(q);
}

// ---- backward ops -------------------------------------------------------------------------------

#define LIMPID_SPECIAL_GRADIENT_OP(...)
#define LIMPID_GRADIENT_OP(result, name, parameters, arguments) \
  result CountingGradients::name parameters { return ex_.like arguments; }
#include "executor/gradient_op_list.h"

void CountingGradients::embed(const Weight& /*table*/, EmbedBy /*by*/, const Activation& /*dy*/) {}

void CountingGradients::project(const Activation& x, std::span<Projection> projections) {
  ex_.linear(x, projections);
}

Activation CountingGradients::linear(const Activation& x,
                                     std::span<const ProjectionGradient> projections,
                                     bool want_dx) {
  for (const ProjectionGradient& p : projections) count_dweight(x, p.weight);
  if (!want_dx) return {};
  Activation dx = ex_.allocate(projections[0].dy->rows(), projections[0].weight.cols);
  for (const ProjectionGradient& p : projections) ex_.count_product(dx, p.weight);
  return dx;
}

AttentionGradients CountingGradients::attention(const Activation& q, const Activation& k,
                                                const Activation& v, const Activation& /*y*/,
                                                const AttentionShape& /*shape*/,
                                                const Dropout& /*dropout*/,
                                                const Activation& /*dy*/) {
  return {ex_.like(q), ex_.like(k), ex_.like(v)};
}

SwigluGradients CountingGradients::swiglu(const Activation& gate, const Activation& up,
                                          const Activation& /*dy*/) {
  return {ex_.like(gate), ex_.like(up)};
}

Activation CountingGradients::cross_entropy(const Activation& x, const Weight& head,
                                            std::span<const LossTarget> /*targets*/,
                                            std::span<double> /*losses*/, bool want_gradients) {
  ex_.count_product(x, head);
  const int64_t n = std::min(kLossRows, x.rows());
  Activation dx;
  if (want_gradients) dx = ex_.like(x);
  const Activation logits = ex_.allocate(n, head.rows);
  if (!want_gradients) return dx;
  count_dweight(x, head);
  ex_.count_product(x, head);  // dx
  return dx;
}

Activation CountingGradients::narrow(const Activation& x, DType /*dtype*/) {
  return ex_.allocate(x.rows(), (x.cols() + 1) / 2);
}

Activation CountingGradients::widen(const Activation& narrow, int64_t cols, DType /*dtype*/) {
  return ex_.allocate(narrow.rows(), cols);
}

}  // namespace limpid
