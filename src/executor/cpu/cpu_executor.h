// The fast executor: an op splits its work into ranges, the threads of a pool take ranges, and a
// kernel of one instruction set computes each.
#pragma once

#include <algorithm>
#include <atomic>
#include <string>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/thread_pool.h"
#include "executor/cpu/activation_arena.h"
#include "executor/cpu/cpu_kv_storage.h"
#include "executor/cpu/isa.h"
#include "executor/cpu/packed_weight.h"
#include "executor/executor.h"
#include "executor/executors.h"
#include "executor/rope_table.h"

namespace limpid {

class CpuExecutor final : public Executor {
 public:
  // Throws ArgumentError for an instruction set that is not there or a bad number of threads.
  explicit CpuExecutor(const ExecutorOptions& options);
  ~CpuExecutor() override;

  std::string_view name() const override { return "cpu"; }
  std::string_view isa() const { return isa_.name; }

  uint64_t weight_bytes(const WeightSource& source) const override;
  uint64_t kv_bytes(const KvLayout& layout) const override;
  uint64_t step_bytes(const StepSize& size) const override;
  Weight load_weight(const WeightSource& source) override;
  RopeTable load_rope(std::span<const double> inverse_frequencies, int64_t n_positions) override;
  std::unique_ptr<KvStorage> allocate_kv(const KvLayout& layout) override;
  void reserve(int64_t max_tokens, int64_t max_outputs) override;

  StepInputs& inputs() override { return inputs_; }
  void begin_step() override;
  void end_step() override {}

  // Each op has a file of its name in cpu/, or is in pointwise.cpp, norms.cpp or embed.cpp.
#define LIMPID_OP(result, name, parameters, arguments) result name parameters override;
#include "executor/op_list.h"

  void linear_in_parts(const Activation& x, const Weight& weight, const SeePart& see) override;
  ThreadPool* threads() override { return &pool_; }
  GradientOps* gradient_ops() override { return gradients_.get(); }
  void read(const Activation& x, std::span<float> out) override;
  void read_best(const Activation& x, int64_t k, std::span<int32_t> columns,
                 std::span<float> values) override;
  int64_t most_best() const override { return 1024; }
  std::span<const float> view(const Activation& x) const override {
    return {arena_.data(x.id()), static_cast<size_t>(x.rows() * x.cols())};
  }
  Activation write(std::span<const float> values, int64_t rows, int64_t cols) override;

  // For tests of the contract: how often the arena grew.
  const ActivationArena& arena() const { return arena_; }

 private:
  friend class CpuGradients;
  // `tensor` has the dtype and the shape of `rows`; of a vector, those of the file.
  struct LoadedWeight : WeightSource {
    StoredRows rows{};            // in the file, or in `decoded`
    Tensor decoded{};             // of a plain type that no kernel reads
    PackedWeight packed{};        // of a quantised type, unless it stays in the file
    std::vector<float> vector{};  // WeightUse::kVector
  };
  // Tokens [begin, end).
  struct TokenRange {
    int64_t begin;
    int64_t end;
  };
  struct AttentionCall;
  // The progress of a wave of a task. Threads that work on other tasks use other cache lines.
  struct alignas(64) AttentionProgress {
    std::atomic<int64_t> n_merged{0};  // the first so many blocks of the task are in its state
    std::atomic<int64_t> n_left{0};    // blocks of the wave that are not computed yet
  };

  // Elements that one thread computes in about the time that it takes to wake another one.
  static constexpr int64_t kElementsPerThread = 8192;

  void release(int32_t id) noexcept override { arena_.give(id); }
  Activation allocate(int64_t n_rows, int64_t n_cols);
  float* data(const Activation& x) { return arena_.data(x.id()); }
  // Shares out rows of `cols` elements: body(begin, end) computes rows [begin, end).
  template <class Body>
  void for_rows(int64_t n_rows, int64_t cols, Body&& body) {
    pool_.for_ranges(n_rows, std::max<int64_t>(1, kElementsPerThread / cols),
                     [&](int64_t begin, int64_t end, int /*thread*/) { body(begin, end); });
  }
  // An activation of the shape of x: body(i, n, y) computes n elements from element i on, to y.
  template <class Body>
  Activation elementwise(const Activation& x, Body body);
  const LoadedWeight& loaded(const Weight& handle) const {
    return weights_[static_cast<size_t>(handle.id)];
  }
  // The op `rope`; `back`: by the opposite angles.
  Activation rotate(const Activation& x, const RopeTable& table, int64_t head_dim, bool back);
  // The input of `linear` as the kernels of its projections read it.
  struct LinearInput {
    const Activation& plain;
    Activation quantized;     // no rows: no projection is quantised
    Activation packed;        // no rows: no projection is multiplied as f32, or for one token
    Activation packed_pairs;  // no rows: no projection is multiplied as bf16
  };
  LinearInput linear_input(const Activation& x, std::span<const Projection> projections);
  const float* input_of(const LinearInput& input, const Weight& weight);
  Activation quantize(const Activation& x);
  Activation pack(const Activation& x, DType products);
  // Groups [begin, end) for some tokens, and where the results go: output r of token t to
  // y[t * y_stride + r - first_row].
  struct GroupRange {
    int64_t begin;
    int64_t end;
    TokenRange tokens;
    float* y;
    int64_t y_stride;
    int64_t first_row;  // of a group, `begin` or one before it
  };
  // Rows of some groups of one projection.
  void linear_groups(const LinearInput& input, const Projection& projection,
                     const GroupRange& groups, int thread);
  // The same for a quantised weight that stays in the file: packs a group and multiplies it, then
  // the next one. `task` has all but the weight.
  void linear_in_file(const LoadedWeight& weight, LinearTask task, const GroupRange& groups,
                      int thread);
  bool is_quantized_weight(const Weight& weight) const;
  bool is_packed_late(const Weight& weight) const;  // it stays in the file: linear_in_file
  DType products_of(const Weight& weight) const;    // of a weight of floats
  float* linear_scratch(int thread);
  float* attention_scratch(int thread);

  void make_token_tiles(int64_t tokens_per_tile);

  const Isa& isa_;
  const Kernels& kernels_;
  const DType products_;  // of weights of bf16
  const WeightReading weight_reading_ = weight_reading();
  ThreadPool pool_;
  StepInputs inputs_;
  ActivationArena arena_;
  std::vector<LoadedWeight> weights_;
  std::vector<RopeAngles> rope_tables_;
  std::vector<TokenRange> token_tiles_;  // of one sequence each, which attention takes together
  int64_t widest_ = 1;                   // columns of an activation, logits aside
  int64_t widest_head_ = 1;              // columns of logits
  const int64_t linear_scratch_floats_;
  AlignedBuffer linear_scratch_;      // [threads, linear_scratch_floats_]
  AlignedBuffer packing_scratch_;     // [threads], a group of the widest weight in the file each
  AlignedBuffer attention_scratch_;   // [threads, attention_floats_]
  AlignedBuffer attention_partials_;  // of attend_split, for any number of its tasks
  std::vector<AttentionProgress> attention_progress_;  // of these tasks
  int64_t attention_floats_ = 0;
  std::unique_ptr<GradientOps> gradients_;
};

}  // namespace limpid
