// A model on two devices: one executor has the first layers, another one the rest.
//
//   embedding, layers [0, n)                first, for instance the GPU
//   layers [n, n_layers), norm and head     second, for instance the CPU
//
// An op that uses a weight runs where the weight lies, the others where the pass is. So the pass
// moves to the second executor at the first weight of layer n, and stays there. What it still needs
// from the first one is copied through the host, once: the residual stream, one activation. The
// steps of both executors begin together. The first one's step ends at the move, the second one's
// at the end of the pass.
//
// A copy keeps all bits, so a token's result has the same bits in any batch and any chunking of its
// prompt. They are not those of either executor alone.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "executor/executor.h"

namespace limpid {

// What the executor of layers [0, n_first), or the other one, loads of a weight: the weight, or
// nothing. The first executor has the table of a tied embedding, and the second one the head.
std::optional<WeightSource> part_of_weight(const WeightSource& source, int64_t n_first,
                                           bool is_first);

class LayeredExecutor final : public Executor {
 public:
  // Layers [0, n_first) of `n_layers` lie on `first`; 0 < n_first < n_layers.
  LayeredExecutor(std::unique_ptr<Executor> first, std::unique_ptr<Executor> second,
                  int64_t n_first, int64_t n_layers);

  std::string_view name() const override { return name_; }  // "opencl:8+cpu", of 8 layers

  uint64_t weight_bytes(const WeightSource& source) const override;
  uint64_t kv_bytes(const KvLayout& layout) const override;
  uint64_t rope_bytes(int64_t n_rot, int64_t n_positions) const override;
  // The sum; a head counts on the second.
  uint64_t step_bytes(const StepSize& size) const override;
  // The largest amount that can be divided by layers so that neither executor gets more than it
  // has.
  uint64_t available_memory() const override;

  Weight load_weight(const WeightSource& source) override;
  RopeTable load_rope(std::span<const double> inverse_frequencies, int64_t n_positions) override;
  std::unique_ptr<KvStorage> allocate_kv(const KvLayout& layout) override;
  void reserve(int64_t max_tokens, int64_t max_outputs) override;

  ThreadPool* threads() override {
    return first().threads() != nullptr ? first().threads() : second().threads();
  }
  StepInputs& inputs() override { return first().inputs(); }
  void begin_step() override;
  void end_step() override;

#define LIMPID_OP(result, name, parameters, arguments) result name parameters override;
#include "executor/op_list.h"

  void linear_in_parts(const Activation& x, const Weight& weight, const SeePart& see) override;
  Activation write(std::span<const float> values, int64_t rows, int64_t cols) override;
  void read(const Activation& x, std::span<float> out) override;
  void read_best(const Activation& x, int64_t k, std::span<int32_t> columns,
                 std::span<float> values) override;
  std::span<const float> view(const Activation& x) const override;
  int64_t most_best() const override { return second().most_best(); }  // which has the logits

 private:
  static constexpr size_t kFirst = 0;
  static constexpr size_t kSecond = 1;

  // An activation, on one executor or on both.
  struct Slot {
    std::array<Activation, 2> on;
    bool is_free = true;
  };

  Executor& first() const { return *executors_[kFirst]; }
  Executor& second() const { return *executors_[kSecond]; }
  Executor& current() const { return *executors_[at_]; }
  void release(int32_t id) noexcept override;
  Activation keep(Activation made);
  void go_to(size_t executor);
  // One of its executors, and its handle there.
  std::pair<Executor&, const Activation&> where(const Activation& x) const;
  // Goes to where the weight lies, if there is one, and returns its handle there.
  Weight reach(const Weight& weight);
  // An argument of an op for the executor that the pass is at. Moves an activation that is not
  // there.
  Weight local(const Weight& weight) const;
  RopeTable local(const RopeTable& table) const;
  const Activation& local(const Activation& x);
  // Other arguments are the same for both.
  template <class Other>
  static void reach(const Other& /*other*/) {}
  template <class Other>
  static const Other& local(const Other& other) {
    return other;
  }

  std::unique_ptr<Executor> executors_[2];
  int64_t n_first_;
  int64_t n_layers_;
  std::string name_;
  size_t at_ = kFirst;  // where the pass is
  // The handles of both executors; a tied embedding lies on both.
  std::vector<std::array<Weight, 2>> weights_;
  std::vector<std::array<RopeTable, 2>> rope_tables_;
  std::vector<Slot> slots_;
  std::vector<Projection> projections_;  // of the `linear` that runs
  int64_t stream_cols_ = 0;              // of what is moved: an embedding's
  std::vector<float> moved_;             // [tokens, stream_cols_]
};

}  // namespace limpid
