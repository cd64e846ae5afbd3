#include "train/tape.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace limpid {

Tape::Tape(std::unique_ptr<Executor> inner, const TapeOptions& options)
    : DelegatingExecutor(std::move(inner)),
      gradients_(DelegatingExecutor::inner().gradient_ops()),
      options_(options) {
  LIMPID_CHECK(UnsupportedError, gradients_ != nullptr,
               "the executor `{}` has no backward formulas; train with `cpu` or `reference`",
               name());
}

Weight Tape::load_weight(const WeightSource& source) {
  LIMPID_CHECK(UnsupportedError, source.row_order == RowOrder::kHalfSplit,
               "{}: rows of interleaved pairs have no backward formulas; put them half-split first",
               source.name);
  LoadedWeight loaded{{}, source.tensor, source.use};
  WeightSource read = source;
  const bool has_values = source.tensor.data != nullptr;  // not in a plan of memory
  if (options_.dtype != DType::kF32 && source.use != WeightUse::kVector && has_values) {
    loaded.rounded = Tensor(options_.dtype, source.tensor.shape);
    encode(loaded);
    read.tensor = loaded.rounded;
  }
  loaded.handle = inner().load_weight(read);
  const auto id = static_cast<size_t>(loaded.handle.id);
  weights_.resize(std::max(weights_.size(), id + 1));
  weights_[id] = std::move(loaded);
  return weights_[id].handle;
}

void Tape::encode(LoadedWeight& weight) {
  const auto n = static_cast<size_t>(weight.tensor.shape.n_elements());
  gradients_->round_weight({weight.tensor.f32(), n}, options_.dtype, weight.rounded.data());
}

void Tape::refresh() {
  for (LoadedWeight& weight : weights_) {
    if (!learns(weight.handle)) continue;
    if (weight.rounded.data() != nullptr) encode(weight);
    gradients_->refresh(weight.handle);
  }
}

void Tape::begin_step() {
  record_.clear();
  nodes_.clear();
  to_narrow_.clear();
  head_ = {};
  dropout_.place = 0;
  inner().begin_step();
}

// ---- values and their gradients -----------------------------------------------------------------

// The decoder drops a handle when it does not need the value any more. What the backward pass reads
// stays; of a Llama that is about a dozen values a layer, [n_tokens, d_model] or wider, and most of
// the memory of training. With `recompute` only the residual stream stays.
void Tape::release(int32_t id) noexcept {
  if (static_cast<size_t>(id) >= nodes_.size()) return;  // forgotten by `backward`
  Node& node = nodes_[static_cast<size_t>(id)];
  const bool stays = options_.recompute ? node.is_stream : node.needed_backwards;
  if (!stays) {
    node.value = {};
  } else if (!node.is_stream && options_.dtype != DType::kF32) {
    to_narrow_.push_back(id);  // `keep` has made room
  }
}

// Values are rounded when they are computed (`keep`), so storing them in 16 bits loses nothing.
// This happens at the next op, because release() must not fail and cannot allocate.
void Tape::store_narrow() {
  for (const int32_t id : to_narrow_) {
    Node& node = nodes_[static_cast<size_t>(id)];
    node.narrow = gradients_->narrow(node.value, options_.dtype);
    node.value = {};
  }
  to_narrow_.clear();
}

Activation Tape::rounded(Activation x) {
  return options_.dtype == DType::kF32 ? std::move(x) : round(x);
}

Activation Tape::round(const Activation& x) {
  return gradients_->widen(gradients_->narrow(x, options_.dtype), x.cols(), options_.dtype);
}

Dropout Tape::next_dropout() {
  Dropout dropout = dropout_;
  ++dropout_.place;
  return dropout;
}

Activation Tape::keep(Node node, int64_t rows) {
  Activation handle(this, static_cast<int32_t>(nodes_.size()), rows, node.cols);
  nodes_.push_back(std::move(node));
  store_narrow();
  to_narrow_.reserve(nodes_.size());
  return handle;
}

Activation Tape::keep(bool is_stream, bool needs_gradient, std::function<Activation()> compute) {
  Node node;
  if (!is_stream && options_.dtype != DType::kF32)
    compute = [this, inside = std::move(compute)] { return round(inside()); };
  node.value = compute();
  node.cols = node.value.cols();
  if (options_.recompute) node.compute = std::move(compute);
  node.is_stream = is_stream;
  node.needs_gradient = needs_gradient;
  const int64_t rows = node.value.rows();
  return keep(std::move(node), rows);
}

const Activation& Tape::value(int32_t id) {
  Node& node = nodes_[static_cast<size_t>(id)];
  if (node.value) return node.value;
  if (node.narrow) {
    node.value = gradients_->widen(node.narrow, node.cols, options_.dtype);
    node.narrow = {};
  } else if (node.compute) {
    node.value = node.compute();
  }
  return node.value;
}

// The residual stream x is read by a norm and by the addition after the block, so its gradient is a
// sum of two: the derivative of a sum is the sum of the derivatives. A shared pointer saves the
// copy where both operands of an addition get the same gradient.
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

void Tape::record(const Activation& y, std::initializer_list<int32_t> reads,
                  std::function<void(const Gradient& dy)> backward) {
  if (!needs_gradient(y)) return;
  for (const int32_t id : reads) nodes_[static_cast<size_t>(id)].needed_backwards = true;
  record_.push_back([this, id = y.id(), backward = std::move(backward)] {
    Node& node = nodes_[static_cast<size_t>(id)];
    if (node.gradient != nullptr) backward(std::exchange(node.gradient, nullptr));
    node = {};
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

void Tape::enter(std::string_view op) {
  throw UnsupportedError(fmt::format("training does not support `{}`", op));
}

Activation Tape::embed(const Weight& table, EmbedBy by) {
  Activation y = keep(true, learns(table), [this, table, by] { return inner().embed(table, by); });
  record(y, {}, [this, table, by](const Gradient& dy) { gradients_->embed(table, by, *dy); });
  return y;
}

// Dropout applies to a sum of two embeddings after the addition. Where a block adds to the residual
// stream, dropout applies to the block's part before the addition.
Activation Tape::add(const Activation& a, const Activation& b) {
  const bool is_stream = node(a).is_stream;
  const bool drops_sum = is_stream && node(b).is_stream;
  const Dropout dropout = is_stream ? next_dropout() : Dropout{};
  const auto drop = [this, dropout](Gradient x) {
    if (!dropout) return x;
    return std::make_shared<const Activation>(gradients_->dropout(*x, dropout));
  };
  Activation y = keep(is_stream, needs_gradient(a) || needs_gradient(b),
                      [this, ia = a.id(), ib = b.id(), dropout, drops_sum] {
                        if (!dropout) return inner().add(value(ia), value(ib));
                        if (drops_sum)
                          return gradients_->dropout(inner().add(value(ia), value(ib)), dropout);
                        return inner().add(value(ia), gradients_->dropout(value(ib), dropout));
                      });
  record(y, {}, [this, ia = a.id(), ib = b.id(), drops_sum, drop](const Gradient& dy) {
    const Gradient dropped = drop(dy);
    add_gradient(ia, drops_sum ? dropped : dy);
    add_gradient(ib, dropped);
  });
  return y;
}

Activation Tape::scale(const Activation& x, float factor) {
  Activation y = keep(node(x).is_stream, needs_gradient(x),
                      [this, ix = x.id(), factor] { return inner().scale(value(ix), factor); });
  record(y, {}, [this, ix = x.id(), factor](const Gradient& dy) {
    add_gradient(ix, inner().scale(*dy, factor));
  });
  return y;
}

Activation Tape::rms_norm(const Activation& x, const Weight& weight, float eps) {
  const int32_t ix = x.id();
  Activation y = keep(false, needs_gradient(x) || learns(weight),
                      [this, ix, weight, eps] { return inner().rms_norm(value(ix), weight, eps); });
  record(y, {ix}, [this, ix, weight, eps](const Gradient& dy) {
    add_gradient(ix, gradients_->norm(value(ix), weight, {}, eps, false, *dy));
  });
  return y;
}

Activation Tape::layer_norm(const Activation& x, const Weight& weight, const Weight& bias,
                            float eps) {
  const int32_t ix = x.id();
  Activation y = keep(
      false, needs_gradient(x) || learns(weight) || learns(bias),
      [this, ix, weight, bias, eps] { return inner().layer_norm(value(ix), weight, bias, eps); });
  record(y, {ix}, [this, ix, weight, bias, eps](const Gradient& dy) {
    add_gradient(ix, gradients_->norm(value(ix), weight, bias, eps, true, *dy));
  });
  return y;
}

// All projections of one input go back together, when the gradient of the last one is known: the
// record of the first one, which comes last on the way back, does the work. For q, k and v,
//   dx = dq Wq + dk Wk + dv Wv
// is then one op, which adds in one order and needs no memory for the three terms.
void Tape::linear(const Activation& x, std::span<Projection> projections) {
  if (projections.size() == 1 &&
      is_head(weights_[static_cast<size_t>(projections[0].weight.id)].use)) {
    projections[0].y = multiply_head(x, projections[0]);
    return;
  }
  gradients_->project(value(x), projections);
  bool any_needs = false;
  std::vector<std::pair<ProjectionGradient, int32_t>> recorded;
  for (Projection& p : projections) {
    Node result;
    result.value = rounded(std::move(p.y));
    result.cols = result.value.cols();
    if (options_.recompute) {
      result.compute = [this, ix = x.id(), weight = p.weight, bias = p.bias] {
        Projection again{weight, bias, {}};
        gradients_->project(value(ix), {&again, 1});
        return rounded(std::move(again.y));
      };
    }
    result.needs_gradient = needs_gradient(x) || learns(p.weight) || learns(p.bias);
    any_needs = any_needs || result.needs_gradient;
    p.y = keep(std::move(result), x.rows());
    recorded.push_back({{p.weight, p.bias, nullptr}, p.y.id()});
  }
  if (!any_needs) return;
  const bool any_learns = std::ranges::any_of(
      projections, [&](const Projection& p) { return learns(p.weight) || learns(p.bias); });
  if (any_learns) nodes_[static_cast<size_t>(x.id())].needed_backwards = true;
  record_.push_back([this, ix = x.id(), any_learns, recorded = std::move(recorded)] {
    std::vector<ProjectionGradient> known;
    std::vector<Activation> dys;
    dys.reserve(recorded.size());
    for (const auto& [projection, iy] : recorded) {
      Node& y = nodes_[static_cast<size_t>(iy)];
      if (y.gradient == nullptr) continue;
      known.push_back(projection);
      known.back().dy = y.gradient.get();
      if (options_.dtype == DType::kF32) continue;
      dys.push_back(round(*y.gradient));
      known.back().dy = &dys.back();
    }
    const bool want_dx = nodes_[static_cast<size_t>(ix)].needs_gradient;
    if (known.empty()) return;
    const Activation none;
    Activation dx = gradients_->linear(any_learns ? value(ix) : none, known, want_dx);
    for (const auto& [projection, iy] : recorded) nodes_[static_cast<size_t>(iy)] = {};
    if (want_dx) add_gradient(ix, std::move(dx));
  });
}

Activation Tape::rope(const Activation& x, const RopeTable& table, int64_t head_dim) {
  Activation y = keep(false, needs_gradient(x), [this, ix = x.id(), table, head_dim] {
    return inner().rope(value(ix), table, head_dim);
  });
  record(y, {}, [this, ix = x.id(), table, head_dim](const Gradient& dy) {
    add_gradient(ix, gradients_->rope(table, head_dim, *dy));
  });
  return y;
}

Activation Tape::attention(const Activation& q, const Activation& k, const Activation& v,
                           KvStorage& /*kv*/, int64_t /*layer*/, const AttentionShape& shape) {
  const Dropout dropout = next_dropout();
  const int32_t iq = q.id();
  const int32_t ik = k.id();
  const int32_t iv = v.id();
  Activation y =
      keep(false, needs_gradient(q) || needs_gradient(k) || needs_gradient(v),
           [this, iq, ik, iv, shape, dropout] {
             return gradients_->attend_whole(value(iq), value(ik), value(iv), shape, dropout);
           });
  const int32_t iy = y.id();
  record(y, {iq, ik, iv, iy}, [this, iq, ik, iv, iy, shape, dropout](const Gradient& dy) {
    AttentionGradients d =
        gradients_->attention(value(iq), value(ik), value(iv), value(iy), shape, dropout, *dy);
    add_gradient(iq, std::move(d.dq));
    add_gradient(ik, std::move(d.dk));
    add_gradient(iv, std::move(d.dv));
  });
  return y;
}

Activation Tape::swiglu(const Activation& gate, const Activation& up) {
  const int32_t ig = gate.id();
  const int32_t iu = up.id();
  Activation y = keep(false, needs_gradient(gate) || needs_gradient(up),
                      [this, ig, iu] { return inner().swiglu(value(ig), value(iu)); });
  record(y, {ig, iu}, [this, ig, iu](const Gradient& dy) {
    SwigluGradients d = gradients_->swiglu(value(ig), value(iu), *dy);
    add_gradient(ig, std::move(d.dgate));
    add_gradient(iu, std::move(d.dup));
  });
  return y;
}

Activation Tape::unary(UnaryKind kind, const Activation& x) {
  const int32_t ix = x.id();
  Activation y =
      keep(false, needs_gradient(x), [this, ix, kind] { return inner().unary(kind, value(ix)); });
  record(y, {ix}, [this, ix, kind](const Gradient& dy) {
    add_gradient(ix, gradients_->unary(kind, value(ix), *dy));
  });
  return y;
}

Activation Tape::select_outputs(const Activation& x) {
  Activation y = keep(node(x).is_stream, needs_gradient(x),
                      [this, ix = x.id()] { return inner().select_outputs(value(ix)); });
  record(y, {}, [this, ix = x.id()](const Gradient& dy) {
    add_gradient(ix, gradients_->select_outputs(*dy));
  });
  return y;
}

// ---- head and loss ------------------------------------------------------------------------------

Activation Tape::multiply_head(const Activation& x, const Projection& head) {
  Node logits;
  logits.cols = head.weight.rows;
  logits.needs_gradient = needs_gradient(x) || learns(head.weight);
  Activation y = keep(std::move(logits), x.rows());
  nodes_[static_cast<size_t>(x.id())].needed_backwards = true;
  head_ = {x.id(), y.id(), head.weight};
  return y;
}

void Tape::cross_entropy(const Activation& logits, std::span<const LossTarget> targets,
                         std::span<double> losses, bool want_gradients) {
  LIMPID_CHECK(ShapeError, logits.id() == head_.y, "[cross_entropy] not the result of a head");
  Activation dx =
      gradients_->cross_entropy(value(head_.x), head_.weight, targets, losses, want_gradients);
  if (want_gradients) add_gradient(head_.x, std::move(dx));
}

void Tape::observe(Place place, int64_t layer, const Activation& x) {
  if (observer_) observer_(place, layer, x);
  if (passed_) record_.push_back([this, place, layer] { passed_(place, layer); });
  if (x.id() != head_.y) inner().observe(place, layer, value(x));
}

void Tape::read(const Activation& x, std::span<float> out) {
  if (x.id() != head_.y) return inner().read(value(x), out);
  Projection head{head_.weight, {}, {}};
  inner().linear(value(head_.x), {&head, 1});
  inner().read(head.y, out);
}

}  // namespace limpid
