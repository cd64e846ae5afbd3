// Small models of every family and every option of it, and of every type that matrices may have:
// what tests go through that hold for all of them.
#pragma once

#include <algorithm>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/tiny_checkpoint.h"

namespace limpid::testing {

struct FamilyCase {
  std::string name;
  std::string same_as{};  // the case that gives the same logits; "": none does
  TinyShape shape{};
  DType kv_dtype = DType::kF16;
  std::vector<std::pair<std::string, MetadataValue>> keys{};  // below the architecture
  // Vectors of each block, or of the whole where the name does not begin with "blk.".
  std::vector<std::pair<std::string, int64_t>> vectors{};
  std::optional<RowOrder> row_order{};
  bool has_split_qkv = false;  // of GPT-2: three matrices in place of attn_qkv
};

// The name is googletest's. NOLINTNEXTLINE(readability-identifier-naming)
inline void PrintTo(const FamilyCase& c, std::ostream* out) { *out << c.name; }

inline std::shared_ptr<const Checkpoint> checkpoint_of(const FamilyCase& c) {
  const auto checkpoint = tiny_checkpoint(c.shape);
  checkpoint->row_order = c.row_order;
  for (const auto& [key, value] : c.keys)
    checkpoint->metadata.set(c.shape.architecture + "." + key, value);
  const auto add = [&](const std::string& name, int64_t size) {
    std::vector<float> values;
    for (int64_t i = 0; i < size; ++i) values.push_back(0.5F + 0.25F * static_cast<float>(i % 7));
    checkpoint->owned.push_back(std::make_shared<Tensor>(Tensor::of(Shape{size}, values)));
    checkpoint->tensors[name] = checkpoint->owned.back()->view();
    checkpoint->tensor_order.push_back(name);
  };
  for (const auto& [name, size] : c.vectors) {
    if (!name.starts_with("blk.")) {
      add(name, size);
      continue;
    }
    for (int64_t i = 0; i < c.shape.n_layers; ++i)
      add(fmt::format("blk.{}.{}", i, name.substr(4)), size);
  }
  for (int64_t i = 0; c.has_split_qkv && i < c.shape.n_layers; ++i) {
    for (const std::string suffix : {"weight", "bias"}) {
      const std::string fused = fmt::format("blk.{}.attn_qkv.{}", i, suffix);
      const TensorView all = checkpoint->tensors.at(fused);
      TensorView part = all;
      part.shape =
          suffix == "bias" ? Shape{all.shape[0] / 3} : Shape{all.shape[0] / 3, all.shape[1]};
      for (const char* name : {"q", "k", "v"}) {
        checkpoint->tensors[fmt::format("blk.{}.attn_{}.{}", i, name, suffix)] = part;
        part.data += part.n_bytes();
      }
      checkpoint->tensors.erase(fused);
      std::erase(checkpoint->tensor_order, fused);
    }
  }
  return checkpoint;
}

// One layer, wide enough for blocks of 256 columns.
inline std::vector<FamilyCase> type_cases() {
  std::vector<FamilyCase> cases;
  for (const DType dtype :
       {DType::kF32, DType::kF16, DType::kF64, DType::kBF16, DType::kQ4_0, DType::kQ4_1,
        DType::kQ5_0, DType::kQ5_1, DType::kQ8_0, DType::kQ2_K, DType::kQ3_K, DType::kQ4_K,
        DType::kQ5_K, DType::kQ6_K, DType::kIQ4_NL, DType::kIQ4_XS}) {
    FamilyCase c{.name = "type_" + std::string(dtype_info(dtype).name)};
    c.shape.dtype = dtype;
    c.shape.n_layers = 1;
    c.shape.d_model = c.shape.d_ff = 256;
    c.shape.n_heads = 4;
    c.shape.head_dim = 64;
    if (dtype == DType::kF64) c.same_as = "type_f32";  // of which its numbers are
    c.kv_dtype = cases.size() % 2 == 0 ? DType::kF32 : DType::kF16;
    cases.push_back(std::move(c));
  }
  return cases;
}

inline void add_llama_cases(std::vector<FamilyCase>& cases) {
  const auto add = [&](std::string name, const auto& change) {
    FamilyCase c{.name = std::move(name)};
    change(c);
    cases.push_back(std::move(c));
  };
  add("llama", [](FamilyCase&) {});
  add("llama_untied", [](FamilyCase& c) { c.shape.tied = false; });
  add("llama_multi_head", [](FamilyCase& c) { c.shape.n_kv_heads = 4; });
  add("llama_multi_query", [](FamilyCase& c) { c.shape.n_kv_heads = 1; });
  add("llama_wide_heads", [](FamilyCase& c) { c.shape.head_dim = 48; });
  add("llama_half_split", [](FamilyCase& c) { c.row_order = RowOrder::kHalfSplit; });
  add("llama_f32_cache", [](FamilyCase& c) { c.kv_dtype = DType::kF32; });
  add("llama_qk_norm", [](FamilyCase& c) { c.shape.qk_norm = true; });
  add("llama_biases", [](FamilyCase& c) {
    c.shape.biases = true;
    c.vectors = {{"blk.attn_output.bias", 64},
                 {"blk.ffn_gate.bias", 96},
                 {"blk.ffn_up.bias", 96},
                 {"blk.ffn_down.bias", 64}};
  });
  add("llama_partly_rotated", [](FamilyCase& c) {
    c.keys = {{"rope.dimension_count", metadata_value(int64_t{8})}};
  });
  add("llama_linear_scaling", [](FamilyCase& c) {
    c.keys = {{"rope.scaling.type", metadata_value(std::string("linear"))},
              {"rope.scaling.factor", metadata_value(4.0)}};
  });
  add("llama_llama3_scaling", [](FamilyCase& c) {
    c.keys = {{"rope.scaling.type", metadata_value(std::string("llama3"))},
              {"rope.scaling.factor", metadata_value(8.0)},
              {"rope.scaling.original_context_length", metadata_value(int64_t{256})},
              {"rope.freq_base", metadata_value(500000.0)}};
  });
  add("llama_rope_factors", [](FamilyCase& c) { c.vectors = {{"rope_freqs.weight", 8}}; });
  add("qwen2", [](FamilyCase& c) {
    c.shape.architecture = "qwen2";
    c.shape.biases = true;
  });
  add("qwen3", [](FamilyCase& c) {
    c.shape.architecture = "qwen3";
    c.shape.qk_norm = true;
    c.shape.tied = false;
  });
  add("ernie4_5", [](FamilyCase& c) {
    c.shape.architecture = "ernie4_5";
    c.same_as = "llama";
  });
}

inline void add_gpt2_cases(std::vector<FamilyCase>& cases) {
  const auto add = [&](std::string name, const auto& change) {
    FamilyCase c{.name = std::move(name), .shape = tiny_gpt2_shape()};
    change(c);
    cases.push_back(std::move(c));
  };
  for (const char* activation : {"gelu_tanh", "gelu_erf", "relu", "silu"}) {
    add("gpt2_" + std::string(activation), [&](FamilyCase& c) {
      c.keys = {{"hidden_activation", metadata_value(std::string(activation))}};
    });
  }
  add("gpt2_untied", [](FamilyCase& c) { c.shape.tied = false; });
  add("gpt2_no_biases", [](FamilyCase& c) { c.shape.biases = false; });
  add("gpt2_split_qkv", [](FamilyCase& c) {
    c.has_split_qkv = true;
    c.same_as = "gpt2_gelu_tanh";
  });
  add("gpt2_scales", [](FamilyCase& c) {
    c.keys = {{"attention.scale", metadata_value(0.3)},
              {"attention.scale_by_inverse_layer", metadata_value(true)}};
  });
}

// Two layers of each family with each of its options, of floats and quantised.
inline std::vector<FamilyCase> family_cases() {
  std::vector<FamilyCase> cases;
  add_llama_cases(cases);
  add_gpt2_cases(cases);
  const size_t n = cases.size();
  for (size_t i = 0; i < n; ++i) {
    FamilyCase quantized = cases[i];
    quantized.name += "_q8_0";
    if (!quantized.same_as.empty()) quantized.same_as += "_q8_0";
    quantized.shape.dtype = DType::kQ8_0;
    cases.push_back(std::move(quantized));
  }
  return cases;
}

}  // namespace limpid::testing
