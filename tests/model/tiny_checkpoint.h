// Small random Llama-like and GPT-2 checkpoints in memory, for tests that need a whole model.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "tensor/codec.h"
#include "tensor/plain_blocks.h"
#include "tensor/quantize_row.h"

namespace limpid::testing {

struct TinyShape {
  std::string architecture = "llama";
  int64_t n_layers = 2;
  int64_t d_model = 64;
  int64_t n_heads = 4;
  int64_t n_kv_heads = 2;
  int64_t head_dim = 16;
  int64_t d_ff = 96;
  int64_t vocab_size = 50;
  int64_t n_ctx = 1024;
  bool tied = true;
  bool biases = false;
  bool qk_norm = false;
  int64_t n_rot = 0;          // 0: all of head_dim
  DType dtype = DType::kF32;  // of the matrices; any that is not of integers
  uint32_t seed = 1;
};

// A GPT-2: as many KV heads as heads, learned positions, Q, K, V in one matrix, biases unless
// `biases` is taken away.
inline TinyShape tiny_gpt2_shape() {
  TinyShape shape;
  shape.architecture = "gpt2";
  shape.n_kv_heads = shape.n_heads;
  shape.biases = true;
  return shape;
}

inline MetadataValue metadata_value(int64_t value) { return {value, "i64"}; }
inline MetadataValue metadata_value(double value) { return {value, "f64"}; }
inline MetadataValue metadata_value(bool value) { return {value, "bool"}; }
inline MetadataValue metadata_value(std::string value) { return {std::move(value), "string"}; }

class TinyCheckpointBuilder {
 public:
  explicit TinyCheckpointBuilder(const TinyShape& shape) : shape_(shape), random_(shape.seed) {}

  std::shared_ptr<Checkpoint> build() {
    const TinyShape& s = shape_;
    checkpoint_->path = "tiny";
    checkpoint_->format = "memory";
    Metadata& m = checkpoint_->metadata;
    m.set("general.architecture", metadata_value(s.architecture));
    const auto set = [&](const std::string& key, MetadataValue v) {
      m.set(s.architecture + "." + key, std::move(v));
    };
    set("block_count", metadata_value(s.n_layers));
    set("embedding_length", metadata_value(s.d_model));
    set("feed_forward_length", metadata_value(s.d_ff));
    set("context_length", metadata_value(s.n_ctx));
    set("attention.head_count", metadata_value(s.n_heads));
    if (s.architecture == "gpt2") {
      set("attention.layer_norm_epsilon", metadata_value(1e-5));
      build_gpt2();
      return checkpoint_;
    }
    set("attention.head_count_kv", metadata_value(s.n_kv_heads));
    set("attention.key_length", metadata_value(s.head_dim));
    set("attention.value_length", metadata_value(s.head_dim));
    set("attention.layer_norm_rms_epsilon", metadata_value(1e-5));
    if (s.n_rot > 0) set("rope.dimension_count", metadata_value(s.n_rot));
    matrix("token_embd.weight", s.vocab_size, s.d_model, 1.0F);
    for (int64_t i = 0; i < s.n_layers; ++i) block(fmt::format("blk.{}.", i));
    vector("output_norm.weight", s.d_model);
    if (!s.tied) matrix("output.weight", s.vocab_size, s.d_model, 1.0F);
    return checkpoint_;
  }

 private:
  void build_gpt2() {
    const TinyShape& s = shape_;
    matrix("token_embd.weight", s.vocab_size, s.d_model, 1.0F);
    matrix("position_embd.weight", s.n_ctx, s.d_model, 1.0F);
    for (int64_t i = 0; i < s.n_layers; ++i) {
      const std::string at = fmt::format("blk.{}.", i);
      with_bias(at + "attn_norm", s.d_model);
      with_bias(at + "attn_qkv", 3 * s.d_model, s.d_model, 1.5F);
      with_bias(at + "attn_output", s.d_model, s.d_model, 1.0F);
      with_bias(at + "ffn_norm", s.d_model);
      with_bias(at + "ffn_up", s.d_ff, s.d_model, 1.0F);
      with_bias(at + "ffn_down", s.d_model, s.d_ff, 1.0F);
    }
    with_bias("output_norm", s.d_model);
    if (!s.tied) matrix("output.weight", s.vocab_size, s.d_model, 1.0F);
  }

  void with_bias(const std::string& name, int64_t rows, int64_t cols = 0, float gain = 0) {
    if (cols == 0) {
      vector(name + ".weight", rows);
    } else {
      matrix(name + ".weight", rows, cols, gain);
    }
    if (shape_.biases) vector(name + ".bias", rows);
  }

  void block(const std::string& at) {
    const TinyShape& s = shape_;
    const int64_t d_q = s.n_heads * s.head_dim;
    const int64_t d_kv = s.n_kv_heads * s.head_dim;
    vector(at + "attn_norm.weight", s.d_model);
    matrix(at + "attn_q.weight", d_q, s.d_model, 1.5F);
    matrix(at + "attn_k.weight", d_kv, s.d_model, 1.5F);
    matrix(at + "attn_v.weight", d_kv, s.d_model, 1.0F);
    matrix(at + "attn_output.weight", s.d_model, d_q, 1.0F);
    vector(at + "ffn_norm.weight", s.d_model);
    matrix(at + "ffn_gate.weight", s.d_ff, s.d_model, 1.0F);
    matrix(at + "ffn_up.weight", s.d_ff, s.d_model, 1.0F);
    matrix(at + "ffn_down.weight", s.d_model, s.d_ff, 1.0F);
    if (s.biases) {
      vector(at + "attn_q.bias", d_q);
      vector(at + "attn_k.bias", d_kv);
      vector(at + "attn_v.bias", d_kv);
    }
    if (s.qk_norm) {
      vector(at + "attn_q_norm.weight", s.head_dim);
      vector(at + "attn_k_norm.weight", s.head_dim);
    }
  }

  // Standard deviation gain / sqrt(cols).
  void matrix(const std::string& name, int64_t rows, int64_t cols, float gain) {
    std::normal_distribution<float> normal(0.0F, gain / std::sqrt(static_cast<float>(cols)));
    std::vector<float> values(static_cast<size_t>(rows * cols));
    for (float& value : values) value = normal(random_);
    Tensor tensor(shape_.dtype, Shape{rows, cols});
    if (shape_.dtype == DType::kF64) {
      const std::vector<double> wide(values.begin(), values.end());
      std::memcpy(tensor.data(), wide.data(), wide.size() * sizeof(double));
    } else if (shape_.dtype > DType::kQ8_0) {
      quantize_row(shape_.dtype, values, {}, tensor.data());
    } else {
      plain_blocks::encode(shape_.dtype, values, tensor.data());
    }
    add(name, std::move(tensor));
  }

  void vector(const std::string& name, int64_t size) {
    std::uniform_real_distribution<float> uniform(0.5F, 1.5F);
    std::vector<float> values(static_cast<size_t>(size));
    for (float& value : values) value = uniform(random_);
    add(name, Tensor::of(Shape{size}, values));
  }

  void add(const std::string& name, Tensor tensor) {
    checkpoint_->owned.push_back(std::make_shared<Tensor>(std::move(tensor)));
    checkpoint_->tensors[name] = checkpoint_->owned.back()->view();
    checkpoint_->tensor_order.push_back(name);
  }

  TinyShape shape_;
  std::mt19937 random_;
  std::shared_ptr<Checkpoint> checkpoint_ = std::make_shared<Checkpoint>();
};

inline std::shared_ptr<Checkpoint> tiny_checkpoint(const TinyShape& shape = {}) {
  return TinyCheckpointBuilder(shape).build();
}

}  // namespace limpid::testing
