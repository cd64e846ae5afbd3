#include "train/tape.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace limpid {

Tape::Tape(std::unique_ptr<Executor> inner)
    : DelegatingExecutor(std::move(inner)), gradients_(DelegatingExecutor::inner().gradient_ops()) {
  LIMPID_CHECK(UnsupportedError, gradients_ != nullptr,
               "the executor `{}` has no backward formulas; train with `cpu` or `reference`",
               name());
}

Weight Tape::load_weight(const WeightSource& source) {
  LIMPID_CHECK(UnsupportedError, source.row_order == RowOrder::kHalfSplit,
               "{}: rows of interleaved pairs have no backward formulas; put them half-split first",
               source.name);
  const Weight weight = inner().load_weight(source);
  weights_.resize(std::max(weights_.size(), static_cast<size_t>(weight.id) + 1));
  weights_[static_cast<size_t>(weight.id)] = {weight, source.tensor, source.use};
  return weight;
}

void Tape::begin_step() {
  record_.clear();
  nodes_.clear();
  head_ = {};
  inner().begin_step();
}

// ---- values and their gradients -----------------------------------------------------------------

void Tape::release(int32_t id) noexcept {
  if (static_cast<size_t>(id) >= nodes_.size()) return;  // forgotten by `backward`
  Node& node = nodes_[static_cast<size_t>(id)];
  if (!node.needed_backwards) node.value = {};
}

Activation Tape::keep(Activation value, bool needs_gradient) {
  Activation handle(this, static_cast<int32_t>(nodes_.size()), value.rows(), value.cols());
  nodes_.push_back({std::move(value), nullptr, needs_gradient, false});
  return handle;
}

const Activation& Tape::value(const Activation& x) const {
  return nodes_[static_cast<size_t>(x.id())].value;
}

int32_t Tape::keep_for_backward(const Activation& x) {
  nodes_[static_cast<size_t>(x.id())].needed_backwards = true;
  return x.id();
}

bool Tape::needs_gradient(const Activation& x) const {
  return nodes_[static_cast<size_t>(x.id())].needs_gradient;
}

void Tape::add_gradient(int32_t id, Gradient gradient) {
  Node& node = nodes_[static_cast<size_t>(id)];
  if (!node.needs_gradient) return;
  node.gradient = node.gradient == nullptr
                      ? std::move(gradient)
                      : std::make_shared<const Activation>(inner().add(*node.gradient, *gradient));
}

void Tape::add_gradient(int32_t id, Activation gradient) {
  add_gradient(id, std::make_shared<const Activation>(std::move(gradient)));
}

void Tape::record(const Activation& y, std::function<void(const Gradient& dy)> backward) {
  if (!needs_gradient(y)) return;
  record_.push_back([this, id = y.id(), backward = std::move(backward)] {
    Node& node = nodes_[static_cast<size_t>(id)];
    if (node.gradient != nullptr) backward(std::exchange(node.gradient, nullptr));
    node.value = {};
  });
}

void Tape::backward() {
  while (!record_.empty()) {
    record_.back()();
    record_.pop_back();
  }
  nodes_.clear();
}

// ---- ops ----------------------------------------------------------------------------------------

Activation Tape::embed(const Weight& table) {
  Activation y = keep(inner().embed(table), learns(table));
  record(y, [this, table](const Gradient& dy) { gradients_->embed(table, *dy); });
  return y;
}

Activation Tape::embed_positions(const Weight& table) {
  Activation y = keep(inner().embed_positions(table), learns(table));
  record(y, [this, table](const Gradient& dy) { gradients_->embed_positions(table, *dy); });
  return y;
}

Activation Tape::add(const Activation& a, const Activation& b) {
  Activation y = keep(inner().add(value(a), value(b)), needs_gradient(a) || needs_gradient(b));
  record(y, [this, ia = a.id(), ib = b.id()](const Gradient& dy) {
    add_gradient(ia, dy);
    add_gradient(ib, dy);
  });
  return y;
}

Activation Tape::scale(const Activation& x, float factor) {
  Activation y = keep(inner().scale(value(x), factor), needs_gradient(x));
  record(y, [this, ix = x.id(), factor](const Gradient& dy) {
    add_gradient(ix, inner().scale(*dy, factor));
  });
  return y;
}

Activation Tape::rms_norm(const Activation& x, const Weight& weight, float eps) {
  Activation y = keep(inner().rms_norm(value(x), weight, eps), needs_gradient(x) || learns(weight));
  record(y, [this, ix = keep_for_backward(x), weight, eps](const Gradient& dy) {
    add_gradient(ix, gradients_->rms_norm(nodes_[ix].value, weight, eps, *dy));
  });
  return y;
}

Activation Tape::layer_norm(const Activation& x, const Weight& weight, const Weight& bias,
                            float eps) {
  Activation y = keep(inner().layer_norm(value(x), weight, bias, eps),
                      needs_gradient(x) || learns(weight) || learns(bias));
  record(y, [this, ix = keep_for_backward(x), weight, bias, eps](const Gradient& dy) {
    add_gradient(ix, gradients_->layer_norm(nodes_[ix].value, weight, bias, eps, *dy));
  });
  return y;
}

// All projections of one input go back together, when the gradient of the last one is known: the
// record of the first one, which comes last on the way back, does the work.
void Tape::linear(const Activation& x, std::span<Projection> projections) {
  if (projections.size() == 1 &&
      is_head(weights_[static_cast<size_t>(projections[0].weight.id)].use)) {
    projections[0].y = multiply_head(x, projections[0]);
    return;
  }
  inner().linear(value(x), projections);
  bool any_needs = false;
  std::vector<std::pair<ProjectionGradient, int32_t>> recorded;
  for (Projection& p : projections) {
    const bool needs = needs_gradient(x) || learns(p.weight) || learns(p.bias);
    any_needs = any_needs || needs;
    p.y = keep(std::move(p.y), needs);
    recorded.push_back({{p.weight, p.bias, nullptr}, p.y.id()});
  }
  if (!any_needs) return;
  const bool any_learns = std::ranges::any_of(
      projections, [&](const Projection& p) { return learns(p.weight) || learns(p.bias); });
  if (any_learns) keep_for_backward(x);
  record_.push_back([this, ix = x.id(), recorded = std::move(recorded)] {
    std::vector<ProjectionGradient> known;
    for (const auto& [projection, iy] : recorded) {
      const Node& y = nodes_[static_cast<size_t>(iy)];
      if (y.gradient == nullptr) continue;
      known.push_back(projection);
      known.back().dy = y.gradient.get();
    }
    const bool want_dx = nodes_[static_cast<size_t>(ix)].needs_gradient;
    if (known.empty()) return;
    Activation dx = gradients_->linear(nodes_[static_cast<size_t>(ix)].value, known, want_dx);
    for (const auto& [projection, iy] : recorded) nodes_[static_cast<size_t>(iy)] = {};
    if (want_dx) add_gradient(ix, std::move(dx));
  });
}

Activation Tape::rope(const Activation& x, const RopeTable& table, int64_t head_dim) {
  Activation y = keep(inner().rope(value(x), table, head_dim), needs_gradient(x));
  record(y, [this, ix = x.id(), table, head_dim](const Gradient& dy) {
    add_gradient(ix, gradients_->rope(table, head_dim, *dy));
  });
  return y;
}

// Every layer uses layer 0 of the cache: the backward pass reads q, k and v themselves.
Activation Tape::attention(const Activation& q, const Activation& k, const Activation& v,
                           KvStorage& kv, int64_t /*layer*/, const AttentionShape& shape) {
  Activation y = keep(inner().attention(value(q), value(k), value(v), kv, 0, shape),
                      needs_gradient(q) || needs_gradient(k) || needs_gradient(v));
  if (!needs_gradient(y)) return y;
  record(y, [this, iq = keep_for_backward(q), ik = keep_for_backward(k), iv = keep_for_backward(v),
             iy = keep_for_backward(y), shape](const Gradient& dy) {
    AttentionGradients d = gradients_->attention(
        nodes_[iq].value, nodes_[ik].value, nodes_[iv].value, nodes_[iy].value, shape, {}, *dy);
    add_gradient(iq, std::move(d.dq));
    add_gradient(ik, std::move(d.dk));
    add_gradient(iv, std::move(d.dv));
  });
  return y;
}

Activation Tape::swiglu(const Activation& gate, const Activation& up) {
  Activation y =
      keep(inner().swiglu(value(gate), value(up)), needs_gradient(gate) || needs_gradient(up));
  record(y, [this, ig = keep_for_backward(gate), iu = keep_for_backward(up)](const Gradient& dy) {
    SwigluGradients d = gradients_->swiglu(nodes_[ig].value, nodes_[iu].value, *dy);
    add_gradient(ig, std::move(d.dgate));
    add_gradient(iu, std::move(d.dup));
  });
  return y;
}

Activation Tape::unary(UnaryKind kind, const Activation& x) {
  Activation y = keep(inner().unary(kind, value(x)), needs_gradient(x));
  record(y, [this, ix = keep_for_backward(x), kind](const Gradient& dy) {
    add_gradient(ix, gradients_->unary(kind, nodes_[ix].value, *dy));
  });
  return y;
}

Activation Tape::select_outputs(const Activation& x) {
  Activation y = keep(inner().select_outputs(value(x)), needs_gradient(x));
  record(y, [this, ix = x.id()](const Gradient& dy) {
    add_gradient(ix, gradients_->select_outputs(*dy));
  });
  return y;
}

// ---- head and loss ------------------------------------------------------------------------------

Activation Tape::multiply_head(const Activation& x, const Projection& head) {
  Activation y(this, static_cast<int32_t>(nodes_.size()), x.rows(), head.weight.rows);
  nodes_.push_back({{}, nullptr, needs_gradient(x) || learns(head.weight), false});
  head_ = {keep_for_backward(x), y.id(), head.weight};
  return y;
}

void Tape::cross_entropy(const Activation& logits, std::span<const LossTarget> targets,
                         std::span<double> losses, bool want_gradients) {
  LIMPID_CHECK(ShapeError, logits.id() == head_.y, "[cross_entropy] not the result of a head");
  Activation dx = gradients_->cross_entropy(nodes_[static_cast<size_t>(head_.x)].value,
                                            head_.weight, targets, losses, want_gradients);
  if (want_gradients) add_gradient(head_.x, std::move(dx));
}

void Tape::observe(std::string_view what, int64_t layer, const Activation& x) {
  if (observer_) observer_(what, layer, x);
  if (passed_) record_.push_back([this, name = std::string(what), layer] { passed_(name, layer); });
  if (x.id() != head_.y) inner().observe(what, layer, value(x));
}

void Tape::read(const Activation& x, std::span<float> out) {
  if (x.id() != head_.y) return inner().read(value(x), out);
  Projection head{head_.weight, {}, {}};
  inner().linear(nodes_[static_cast<size_t>(head_.x)].value, {&head, 1});
  inner().read(head.y, out);
}

}  // namespace limpid
