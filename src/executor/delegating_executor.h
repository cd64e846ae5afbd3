// An executor that passes every call on to another executor. Executors that observe a step derive
// from it: they override one op, or `enter` and `leave`, which are called before and after each op.
// A new op of op_list.h is passed on without a change here.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "executor/executor.h"

namespace limpid {

// Handles of weights, tables and activations are the inner executor's own. linear_in_parts is not
// passed on: it becomes `linear` and `view`, which a derived class sees. Nor is gradient_ops: its
// ops would bypass the derived class.
class DelegatingExecutor : public Executor {
 public:
  explicit DelegatingExecutor(std::unique_ptr<Executor> inner) : inner_(std::move(inner)) {}

  std::string_view name() const override { return inner_->name(); }
  uint64_t weight_bytes(const WeightSource& source) const override {
    return inner_->weight_bytes(source);
  }
  uint64_t kv_bytes(const KvLayout& layout) const override { return inner_->kv_bytes(layout); }
  uint64_t rope_bytes(int64_t n_rot, int64_t n_positions) const override {
    return inner_->rope_bytes(n_rot, n_positions);
  }
  uint64_t step_bytes(const StepSize& size) const override { return inner_->step_bytes(size); }
  uint64_t available_memory() const override { return inner_->available_memory(); }
  std::string memory_name() const override { return inner_->memory_name(); }
  Weight load_weight(const WeightSource& source) override {
    const Weight weight = inner_->load_weight(source);
    sources_[weight.id] = source;
    return weight;
  }
  // Where a weight came from; valid as long as the model lives.
  const WeightSource& source(const Weight& weight) const { return sources_.at(weight.id); }
  RopeTable load_rope(std::span<const double> inverse_frequencies, int64_t n_positions) override {
    return inner_->load_rope(inverse_frequencies, n_positions);
  }
  std::unique_ptr<KvStorage> allocate_kv(const KvLayout& layout) override {
    return inside("allocate_kv", [&] { return inner_->allocate_kv(layout); });
  }
  void reserve(int64_t max_tokens, int64_t max_outputs) override {
    inner_->reserve(max_tokens, max_outputs);
  }
  ThreadPool* threads() override { return inner_->threads(); }
  StepInputs& inputs() override { return inner_->inputs(); }
  void begin_step() override { inner_->begin_step(); }
  void end_step() override { inner_->end_step(); }

#define LIMPID_OP(result, name, parameters, arguments)            \
  result name parameters override {                               \
    return inside(#name, [&] { return inner_->name arguments; }); \
  }
#include "executor/op_list.h"

  void observe(Place place, int64_t layer, const Activation& x) override {
    inner_->observe(place, layer, x);
  }
  void intervene(Place place, int64_t layer, Activation& x) override {
    inner_->intervene(place, layer, x);
  }
  Activation write(std::span<const float> values, int64_t rows, int64_t cols) override {
    return inside("write", [&] { return inner_->write(values, rows, cols); });
  }
  void read(const Activation& x, std::span<float> out) override {
    inside("read", [&] { inner_->read(x, out); });
  }
  std::span<const float> view(const Activation& x) const override { return inner_->view(x); }
  void read_best(const Activation& x, int64_t k, std::span<int32_t> columns,
                 std::span<float> values) override {
    inside("read_best", [&] { inner_->read_best(x, k, columns, values); });
  }
  int64_t most_best() const override { return inner_->most_best(); }

 protected:
  virtual void enter(std::string_view /*op*/) {}
  virtual void leave() {}

  Executor& inner() { return *inner_; }
  const std::map<int32_t, WeightSource>& sources() const { return sources_; }  // by id

  // Calls `op`, which calls the inner executor, between `enter` and `leave`.
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

 private:
  void release(int32_t /*id*/) noexcept override {}  // handles belong to the inner executor

  std::unique_ptr<Executor> inner_;
  std::map<int32_t, WeightSource> sources_;
};

}  // namespace limpid
