#include "train/microgpt/value.h"

#include "base/check.h"

namespace limpid::microgpt {
namespace {

// Python's sum(): from left to right, one rounding for each addition.
double dot_in_order(const double* a, const double* b, size_t n) {
  double total = 0;
  for (size_t i = 0; i < n; ++i) total += a[i] * b[i];
  return total;
}

}  // namespace

// Doubles the arrays, to at least 4,096 nodes.
void Graph::grow() {
  constexpr size_t kFirst = 4096;
  const size_t capacity = std::max(kFirst, 2 * data_.size());
  LIMPID_CHECK(ResourceError, capacity <= (size_t{1} << 32),
               "a step of the scalar engine has more than 2^32 nodes; use the fast engine");
  data_.resize(capacity);
  grad_.resize(capacity);
  nodes_.resize(capacity);
}

void Graph::keep() {
  n_kept_ = size();
  first_moment_.resize(n_kept_);
  second_moment_.resize(n_kept_);
}

void Graph::reset() {
  size_ = n_kept_;
  terms_.clear();
}

Value Graph::dot(const Row& a, const Row& b) { return dots(a.first(), 1, b)[0]; }

// Computes all dots (with one kernel call, unless in Python's order) and appends a node for each.
Row Graph::dots(NodeId first, size_t n_rows, const Row& x) {
  while (size_ + n_rows > data_.size()) grow();
  const size_t n = x.size();
  const size_t begin = size_;
  const double* rows = data_.data() + first;
  if (python_sum_order_) {
    for (size_t r = 0; r < n_rows; ++r) {
      data_[begin + r] = dot_in_order(rows + r * n, x.data().data(), n);
    }
  } else {
    kernels_.dots(rows, n_rows, x.data().data(), n, data_.data() + begin);
  }
  for (size_t r = 0; r < n_rows; ++r) {
    nodes_[begin + r] = {Operation::kDot,
                         static_cast<uint32_t>(n),
                         static_cast<NodeId>(first + r * n),
                         x.first(),
                         0,
                         0};
  }
  size_ += n_rows;
  return since(begin);
}

Value Graph::dot(const Row& a, std::span<const Value> b) {
  const auto first_term = static_cast<NodeId>(terms_.size());
  double total = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    total += a[i].data() * b[i].data();
    terms_.push_back(b[i].id());
  }
  return push(total, {Operation::kScatteredDot, static_cast<uint32_t>(a.size()), a.first(),
                      first_term, 0, 0});
}

Value Graph::sum(const Row& a) {
  double total = 0;
  for (const double term : a.data()) total += term;
  return push(total, {Operation::kSum, static_cast<uint32_t>(a.size()), a.first(), 0, 0, 0});
}

// Sets the gradient of the loss to 1 and all others to 0, then applies the chain rule downwards.
void Graph::backward(Value loss) {
  std::fill_n(grad_.begin(), size_, 0.0);
  grad_[loss.id()] = 1.0;
  kernels_.backward({nodes_.data(), terms_.data(), data_.data(), grad_.data()}, n_kept_, loss.id());
}

void Graph::update(std::span<const double> gradients, const AdamStep& step) {
  kernels_.update(data_.data(), gradients.data(), first_moment_.data(), second_moment_.data(),
                  n_kept_, step);
}

}  // namespace limpid::microgpt
