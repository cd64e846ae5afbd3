// An executor that passes every call on to another one. Executors that watch a step start from it:
// they override the op that they care for, or `enter` and `leave`, which enclose each op.
#pragma once

#include <memory>
#include <string_view>
#include <type_traits>
#include <utility>

#include "executor/executor.h"

namespace limpid {

// Handles of weights, tables and activations are the inner executor's own.
class DelegatingExecutor : public Executor {
 public:
  explicit DelegatingExecutor(std::unique_ptr<Executor> inner) : inner_(std::move(inner)) {}

  std::string_view name() const override { return inner_->name(); }
  Weight load_weight(const WeightSource& source) override { return inner_->load_weight(source); }
  RopeTable load_rope(std::span<const double> inverse_frequencies, int64_t n_positions,
                      double magnitude) override {
    return inner_->load_rope(inverse_frequencies, n_positions, magnitude);
  }
  std::unique_ptr<KvStorage> allocate_kv(const KvLayout& layout) override {
    return inside("allocate_kv", [&] { return inner_->allocate_kv(layout); });
  }
  void reserve(int64_t max_tokens, int64_t max_outputs) override {
    inner_->reserve(max_tokens, max_outputs);
  }
  StepInputs& inputs() override { return inner_->inputs(); }
  void begin_step() override { inner_->begin_step(); }
  void end_step() override { inner_->end_step(); }

  Activation embed(const Weight& table) override {
    return inside("embed", [&] { return inner_->embed(table); });
  }
  Activation embed_positions(const Weight& table) override {
    return inside("embed_positions", [&] { return inner_->embed_positions(table); });
  }
  Activation add(const Activation& a, const Activation& b) override {
    return inside("add", [&] { return inner_->add(a, b); });
  }
  Activation scale(const Activation& x, float factor) override {
    return inside("scale", [&] { return inner_->scale(x, factor); });
  }
  Activation rms_norm(const Activation& x, const Weight& weight, float eps) override {
    return inside("rms_norm", [&] { return inner_->rms_norm(x, weight, eps); });
  }
  Activation layer_norm(const Activation& x, const Weight& weight, const Weight& bias,
                        float eps) override {
    return inside("layer_norm", [&] { return inner_->layer_norm(x, weight, bias, eps); });
  }
  void linear(const Activation& x, std::span<Projection> projections) override {
    inside("linear", [&] { inner_->linear(x, projections); });
  }
  Activation rope(const Activation& x, const RopeTable& table, int64_t head_dim) override {
    return inside("rope", [&] { return inner_->rope(x, table, head_dim); });
  }
  Activation attention(const Activation& q, const Activation& k, const Activation& v, KvStorage& kv,
                       int64_t layer, const AttentionShape& shape) override {
    return inside("attention", [&] { return inner_->attention(q, k, v, kv, layer, shape); });
  }
  Activation swiglu(const Activation& gate, const Activation& up) override {
    return inside("swiglu", [&] { return inner_->swiglu(gate, up); });
  }
  Activation unary(UnaryKind kind, const Activation& x) override {
    return inside("unary", [&] { return inner_->unary(kind, x); });
  }
  Activation select_outputs(const Activation& x) override {
    return inside("select_outputs", [&] { return inner_->select_outputs(x); });
  }
  void observe(std::string_view what, int64_t layer, const Activation& x) override {
    inner_->observe(what, layer, x);
  }
  void read(const Activation& x, std::span<float> out) override {
    inside("read", [&] { inner_->read(x, out); });
  }

 protected:
  virtual void enter(std::string_view /*op*/) {}
  virtual void leave() {}

  Executor& inner() { return *inner_; }

 private:
  void release(int32_t /*id*/) noexcept override {}  // handles belong to the inner executor

  template <typename Op>
  std::invoke_result_t<Op> inside(std::string_view name, Op&& op) {
    struct Leave {
      DelegatingExecutor* self;
      ~Leave() { self->leave(); }
    };
    enter(name);
    const Leave leave_at_end{this};
    return op();
  }

  std::unique_ptr<Executor> inner_;
};

}  // namespace limpid
