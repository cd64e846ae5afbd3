// An executor that shows what a forward pass computes: it passes every op on to another one and
// keeps a copy of each activation that the decoder names.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "executor/executor.h"

namespace limpid {

// One activation of a step, on the host.
struct Observation {
  std::string what;    // "embedding", "attn_heads", "attn_residual", "ffn_residual", …
  int64_t layer = -1;  // -1: outside the blocks
  int64_t n_rows = 0;
  int64_t n_cols = 0;
  std::vector<float> values;  // [n_rows, n_cols]
};

// The results are bit for bit those of the inner executor. A copy is an op of its own (a scale by
// 1), so nothing is read back within a step and the inner executor may be any.
class TapExecutor final : public Executor {
 public:
  explicit TapExecutor(std::unique_ptr<Executor> inner);
  ~TapExecutor() override;

  // What the last step showed, in order; empty when asked again.
  std::vector<Observation> take();

  std::string_view name() const override { return inner_->name(); }
  Weight load_weight(const WeightSource& source) override { return inner_->load_weight(source); }
  RopeTable load_rope(std::span<const double> inverse_frequencies, int64_t n_positions,
                      double magnitude) override {
    return inner_->load_rope(inverse_frequencies, n_positions, magnitude);
  }
  std::unique_ptr<KvStorage> allocate_kv(const KvLayout& layout) override {
    return inner_->allocate_kv(layout);
  }
  void reserve(int64_t max_tokens, int64_t max_outputs) override {
    inner_->reserve(max_tokens, max_outputs);
  }
  StepInputs& inputs() override { return inner_->inputs(); }
  void begin_step() override;
  void end_step() override;

  Activation embed(const Weight& table) override { return inner_->embed(table); }
  Activation embed_positions(const Weight& table) override {
    return inner_->embed_positions(table);
  }
  Activation add(const Activation& a, const Activation& b) override { return inner_->add(a, b); }
  Activation scale(const Activation& x, float factor) override { return inner_->scale(x, factor); }
  Activation rms_norm(const Activation& x, const Weight& weight, float eps) override {
    return inner_->rms_norm(x, weight, eps);
  }
  Activation layer_norm(const Activation& x, const Weight& weight, const Weight& bias,
                        float eps) override {
    return inner_->layer_norm(x, weight, bias, eps);
  }
  void linear(const Activation& x, std::span<Projection> projections) override {
    inner_->linear(x, projections);
  }
  Activation rope(const Activation& x, const RopeTable& table, int64_t head_dim) override {
    return inner_->rope(x, table, head_dim);
  }
  Activation attention(const Activation& q, const Activation& k, const Activation& v, KvStorage& kv,
                       int64_t layer, const AttentionShape& shape) override {
    return inner_->attention(q, k, v, kv, layer, shape);
  }
  Activation gated(GatedKind kind, const Activation& gate, const Activation& up) override {
    return inner_->gated(kind, gate, up);
  }
  Activation unary(UnaryKind kind, const Activation& x) override { return inner_->unary(kind, x); }
  Activation select_outputs(const Activation& x) override { return inner_->select_outputs(x); }
  void observe(std::string_view what, int64_t layer, const Activation& x) override;
  void read(const Activation& x, std::span<float> out) override { inner_->read(x, out); }

 private:
  struct Copy {
    std::string what;
    int64_t layer;
    Activation values;
  };

  void release(int32_t /*id*/) noexcept override {}  // handles belong to the inner executor

  std::unique_ptr<Executor> inner_;
  std::vector<Copy> copies_;
};

}  // namespace limpid
