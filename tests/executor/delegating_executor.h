// An executor that passes every call on to a ReferenceExecutor between two hooks; test executors
// start from it.
#pragma once

#include <memory_resource>

#include "executor/reference/reference_executor.h"

namespace limpid::testing {

class DelegatingExecutor : public Executor {
 public:
  explicit DelegatingExecutor(std::pmr::memory_resource* memory = std::pmr::new_delete_resource())
      : inner_({.n_threads = 1}, memory) {}

  std::string_view name() const override { return "delegating"; }
  Weight load_weight(const WeightSource& source) override { return inner_.load_weight(source); }
  RopeTable load_rope(std::span<const double> frequencies, int64_t n_positions,
                      double magnitude) override {
    return inner_.load_rope(frequencies, n_positions, magnitude);
  }
  std::unique_ptr<KvStorage> allocate_kv(const KvLayout& layout) override {
    return inside([&] { return inner_.allocate_kv(layout); });
  }
  void reserve(int64_t max_tokens, int64_t max_outputs) override {
    inner_.reserve(max_tokens, max_outputs);
  }
  StepInputs& inputs() override { return inner_.inputs(); }
  void begin_step() override { inner_.begin_step(); }
  void end_step() override { inner_.end_step(); }

  Activation embed(const Weight& table) override {
    return inside([&] { return inner_.embed(table); });
  }
  Activation embed_positions(const Weight& table) override {
    return inside([&] { return inner_.embed_positions(table); });
  }
  Activation add(const Activation& a, const Activation& b) override {
    return inside([&] { return inner_.add(a, b); });
  }
  Activation scale(const Activation& x, float factor) override {
    return inside([&] { return inner_.scale(x, factor); });
  }
  Activation rms_norm(const Activation& x, const Weight& weight, float eps) override {
    return inside([&] { return inner_.rms_norm(x, weight, eps); });
  }
  Activation layer_norm(const Activation& x, const Weight& weight, const Weight& bias,
                        float eps) override {
    return inside([&] { return inner_.layer_norm(x, weight, bias, eps); });
  }
  void linear(const Activation& x, std::span<Projection> projections) override {
    inside([&] { inner_.linear(x, projections); });
  }
  Activation rope(const Activation& x, const RopeTable& table, int64_t head_dim) override {
    return inside([&] { return inner_.rope(x, table, head_dim); });
  }
  Activation attention(const Activation& q, const Activation& k, const Activation& v, KvStorage& kv,
                       int64_t layer, const AttentionShape& shape) override {
    return inside([&] { return inner_.attention(q, k, v, kv, layer, shape); });
  }
  Activation gated(GatedKind kind, const Activation& gate, const Activation& up) override {
    return inside([&] { return inner_.gated(kind, gate, up); });
  }
  Activation unary(UnaryKind kind, const Activation& x) override {
    return inside([&] { return inner_.unary(kind, x); });
  }
  Activation select_outputs(const Activation& x) override {
    return inside([&] { return inner_.select_outputs(x); });
  }
  void read(const Activation& x, std::span<float> out) override {
    inside([&] { inner_.read(x, out); });
  }

 protected:
  void release(int32_t /*id*/) noexcept override {}  // handles belong to the inner executor
  virtual void enter() {}
  virtual void leave() {}

  template <typename Op>
  std::invoke_result_t<Op> inside(Op&& op) {
    enter();
    struct Leave {
      DelegatingExecutor* self;
      ~Leave() { self->leave(); }
    } const leave_at_end{this};
    return op();
  }

  ReferenceExecutor inner_;
};

}  // namespace limpid::testing
