// The executor that defines all others: plain loops, f32 in and out, sums in f64. Other executors
// are tested against it. Each op has a file of its name beside this one, or is in pointwise.cpp,
// norms.cpp or embed.cpp.
#pragma once

#include <memory_resource>

#include "base/thread_pool.h"
#include "executor/executor.h"
#include "executor/executors.h"

namespace limpid {

namespace reference {

// [n_rows, n_cols], without gaps.
struct Rows {
  float* data;
  int64_t n_rows;
  int64_t n_cols;
  std::span<float> operator[](int64_t i) const {
    return {data + i * n_cols, static_cast<size_t>(n_cols)};
  }
};

}  // namespace reference

class ReferenceExecutor final : public Executor {
 public:
  // Activations and KV caches come from `memory`, so that a test can hide them from the host.
  explicit ReferenceExecutor(const ExecutorOptions& options = {},
                             std::pmr::memory_resource* memory = std::pmr::new_delete_resource());
  ~ReferenceExecutor() override;

  std::string_view name() const override { return "reference"; }

  uint64_t weight_bytes(const WeightSource& /*source*/) const override { return 0; }
  uint64_t kv_bytes(const KvLayout& layout) const override;  // f32, whatever it is rounded to
  uint64_t rope_bytes(int64_t /*n_rot*/, int64_t /*n_positions*/) const override { return 0; }
  Weight load_weight(const WeightSource& source) override;
  RopeTable load_rope(std::span<const double> inverse_frequencies, int64_t n_positions) override;
  std::unique_ptr<KvStorage> allocate_kv(const KvLayout& layout) override;
  void reserve(int64_t /*max_tokens*/, int64_t /*max_outputs*/) override {}

  StepInputs& inputs() override { return inputs_; }
  void begin_step() override {}
  void end_step() override {}

#define LIMPID_OP(result, name, parameters, arguments) result name parameters override;
#include "executor/op_list.h"

  void read(const Activation& x, std::span<float> out) override;
  Activation write(std::span<const float> values, int64_t rows, int64_t cols) override;

  ThreadPool* threads() override { return &pool_; }
  GradientOps* gradient_ops() override { return gradients_.get(); }

  // For executors that wrap this one.
  reference::Rows rows(const Activation& x);
  const WeightSource& weight(const Weight& handle) const { return weights_[handle.id].source; }

 private:
  friend class ReferenceGradients;
  struct LoadedWeight {
    WeightSource source;
    StoredRows rows;
    std::vector<float> vector;  // decoded, for WeightUse::kVector
  };
  struct Frequencies {
    int64_t n_positions = 0;
    std::vector<double> inverse;  // [n_rot / 2]
  };
  struct Buffer {
    std::pmr::vector<float> values;
    bool free;
  };

  void release(int32_t id) noexcept override;
  // In the first buffer that is free and large enough, so that steps of one shape use the same
  // addresses.
  Activation allocate(int64_t n_rows, int64_t n_cols);
  std::span<const float> vector(const Weight& handle) const;
  // rms_norm, and layer_norm (`centred`).
  Activation norm(const Activation& x, const Weight& weight, const Weight& bias, float eps,
                  bool centred);
  // The op `rope`, by the angles times `direction`: 1, or -1 for gradients.
  Activation rotate(const Activation& x, const RopeTable& table, int64_t head_dim,
                    double direction);

  ThreadPool pool_;
  std::pmr::memory_resource* memory_;
  StepInputs inputs_;
  std::vector<LoadedWeight> weights_;
  std::vector<Frequencies> rope_tables_;
  std::vector<Buffer> buffers_;
  std::unique_ptr<GradientOps> gradients_;
};

}  // namespace limpid
