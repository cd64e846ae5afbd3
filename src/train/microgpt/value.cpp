#include "train/microgpt/value.h"

#include "base/check.h"

namespace limpid::microgpt {
namespace {

// Four numbers that are worked on at once; they need not be aligned.
using Lanes [[gnu::vector_size(32), gnu::aligned(8), gnu::may_alias]] = double;
constexpr size_t kLanes = 4;

double dot_in_lanes(const double* a, const double* b, size_t n) {
  Lanes products = {};
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    products += *reinterpret_cast<const Lanes*>(a + i) * *reinterpret_cast<const Lanes*>(b + i);
  }
  double total = (products[0] + products[1]) + (products[2] + products[3]);
  for (; i < n; ++i) total += a[i] * b[i];
  return total;
}

double dot_in_order(const double* a, const double* b, size_t n) {
  double total = 0;
  for (size_t i = 0; i < n; ++i) total += a[i] * b[i];
  return total;
}

void add_scaled(double* y, const double* x, double scale, size_t n) {
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    *reinterpret_cast<Lanes*>(y + i) += *reinterpret_cast<const Lanes*>(x + i) * scale;
  }
  for (; i < n; ++i) y[i] += x[i] * scale;
}

}  // namespace

void Graph::grow() {
  constexpr size_t kFirst = 4096;
  const size_t capacity = std::max(kFirst, 2 * data_.size());
  LIMPID_CHECK(ResourceError, capacity <= (size_t{1} << 32),
               "a step of the scalar engine has more than 2^32 nodes; use --engine fast");
  data_.resize(capacity);
  grad_.resize(capacity);
  nodes_.resize(capacity);
  met_.resize(capacity);
  order_.reserve(capacity);
  path_.reserve(capacity);
}

void Graph::reset() {
  size_ = n_kept_;
  terms_.clear();
}

Value Graph::dot(const Row& a, const Row& b) {
  const double* left = data_.data() + a.first();
  const double* right = data_.data() + b.first();
  const double total =
      python_sum_order_ ? dot_in_order(left, right, a.size()) : dot_in_lanes(left, right, a.size());
  return push(total,
              {Operation::kDot, static_cast<uint32_t>(a.size()), a.first(), b.first(), 0, 0});
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

// The next node that `visit` was made of and that nobody has met. Parameters are made of nothing
// and need no visit.
bool Graph::next_child(Visit& visit, NodeId& child) {
  const Node& node = nodes_[visit.node];
  const uint32_t n = node.n_terms;
  const auto meet = [&](NodeId id) {
    if (id < n_kept_ || met_[id] != 0) return false;
    met_[id] = 1;
    child = id;
    return true;
  };
  const auto meet_row = [&](NodeId first, uint32_t from) {
    if (first < n_kept_ || met_[first] >= n) return false;
    for (uint32_t i = visit.next_term - from; i < n; ++i) {
      ++visit.next_term;
      if (meet(first + i)) return true;
    }
    met_[first] = n;  // the other dots of this row need not look again
    return false;
  };
  switch (node.operation) {
    case Operation::kLeaf:
      return false;
    case Operation::kUnary:
      return visit.next_term++ == 0 && meet(node.left);
    case Operation::kBinary:
      if (visit.next_term == 0 && (++visit.next_term, meet(node.left))) return true;
      return visit.next_term++ == 1 && meet(node.right);
    case Operation::kSum:
      return meet_row(node.left, 0);
    case Operation::kDot:
    case Operation::kScatteredDot:
      if (visit.next_term < n && meet_row(node.left, 0)) return true;
      visit.next_term = std::max(visit.next_term, n);
      if (node.operation == Operation::kDot) return meet_row(node.right, n);
      while (visit.next_term < 2 * n) {
        if (meet(terms_[node.right + visit.next_term++ - n])) return true;
      }
      return false;
  }
  return false;
}

// Depth first, children before parents.
void Graph::sort_from(NodeId loss) {
  std::fill_n(met_.begin(), size_, 0U);
  order_.clear();
  path_.clear();
  met_[loss] = 1;
  path_.push_back({loss, 0});
  while (!path_.empty()) {
    NodeId child = 0;
    if (next_child(path_.back(), child)) {
      path_.push_back({child, 0});
    } else {
      order_.push_back(path_.back().node);
      path_.pop_back();
    }
  }
}

// The chain rule: d loss / d child += d loss / d node * d node / d child.
void Graph::pass_on(const Node& node, double gradient) {
  double* grad = grad_.data();
  const double* data = data_.data();
  switch (node.operation) {
    case Operation::kLeaf:
      break;
    case Operation::kUnary:
      grad[node.left] += node.slope_left * gradient;
      break;
    case Operation::kBinary:
      grad[node.left] += node.slope_left * gradient;
      grad[node.right] += node.slope_right * gradient;
      break;
    case Operation::kSum:
      for (uint32_t i = 0; i < node.n_terms; ++i) grad[node.left + i] += gradient;
      break;
    case Operation::kDot:
      add_scaled(grad + node.left, data + node.right, gradient, node.n_terms);
      add_scaled(grad + node.right, data + node.left, gradient, node.n_terms);
      break;
    case Operation::kScatteredDot:
      for (uint32_t i = 0; i < node.n_terms; ++i) {
        const NodeId right = terms_[node.right + i];
        grad[node.left + i] += data[right] * gradient;
        grad[right] += data[node.left + i] * gradient;
      }
      break;
  }
}

void Graph::backward(Value loss, bool skip_zero_gradients) {
  sort_from(loss.id());
  std::fill_n(grad_.begin(), size_, 0.0);
  grad_[loss.id()] = 1.0;
  for (size_t i = order_.size(); i-- > 0;) {
    const double gradient = grad_[order_[i]];
    if (skip_zero_gradients && gradient == 0.0) continue;
    pass_on(nodes_[order_[i]], gradient);
  }
}

}  // namespace limpid::microgpt
