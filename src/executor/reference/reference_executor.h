// The executor that defines all others: each op is one call of reference/ops.h.
#pragma once

#include <memory_resource>

#include "base/thread_pool.h"
#include "executor/executor.h"
#include "executor/executors.h"
#include "executor/reference/ops.h"

namespace limpid {

class ReferenceExecutor final : public Executor {
 public:
  // Activations and KV caches come from `memory`, so that a test can hide them from the host.
  explicit ReferenceExecutor(const ExecutorOptions& options = {},
                             std::pmr::memory_resource* memory = std::pmr::new_delete_resource());

  std::string_view name() const override { return "reference"; }

  Weight load_weight(const WeightSource& source) override;
  RopeTable load_rope(std::span<const double> inverse_frequencies, int64_t n_positions,
                      double magnitude) override;
  std::unique_ptr<KvStorage> allocate_kv(const KvLayout& layout) override;
  void reserve(int64_t /*max_tokens*/, int64_t /*max_outputs*/) override {}

  StepInputs& inputs() override { return inputs_; }
  void begin_step() override {}
  void end_step() override {}

  Activation embed(const Weight& table) override;
  Activation embed_positions(const Weight& table) override;
  Activation add(const Activation& a, const Activation& b) override;
  Activation scale(const Activation& x, float factor) override;
  Activation rms_norm(const Activation& x, const Weight& weight, float eps) override;
  Activation layer_norm(const Activation& x, const Weight& weight, const Weight& bias,
                        float eps) override;
  void linear(const Activation& x, std::span<Projection> projections) override;
  Activation rope(const Activation& x, const RopeTable& table, int64_t head_dim) override;
  Activation attention(const Activation& q, const Activation& k, const Activation& v, KvStorage& kv,
                       int64_t layer, const AttentionShape& shape) override;
  Activation swiglu(const Activation& gate, const Activation& up) override;
  Activation unary(UnaryKind kind, const Activation& x) override;
  Activation select_outputs(const Activation& x) override;
  void read(const Activation& x, std::span<float> out) override;

  // For executors that wrap this one.
  reference::Rows rows(const Activation& x);
  const WeightSource& weight(const Weight& handle) const { return weights_[handle.id].source; }

 private:
  struct LoadedWeight {
    WeightSource source;
    StoredRows rows;
    std::vector<float> vector;  // decoded, for WeightUse::kVector
  };
  struct RopeTableData {
    std::vector<double> cos;  // [n_positions, n_rot / 2]
    std::vector<double> sin;
    int64_t n_positions = 0;
  };
  struct Buffer {
    std::pmr::vector<float> values;
    bool free;
  };

  void release(int32_t id) noexcept override;
  // In the first buffer that is free and large enough, so that steps of one shape use the same
  // addresses.
  Activation allocate(int64_t n_rows, int64_t n_cols);
  reference::ConstRows rows(const Activation& x) const;
  std::span<const float> vector(const Weight& handle) const;
  Activation look_up(const Weight& table, std::span<const int32_t> ids);

  ThreadPool pool_;
  std::pmr::memory_resource* memory_;
  StepInputs inputs_;
  std::vector<LoadedWeight> weights_;
  std::vector<RopeTableData> rope_tables_;
  std::vector<Buffer> buffers_;
};

}  // namespace limpid
