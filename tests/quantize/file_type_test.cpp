#include "quantize/file_type.h"

#include <gtest/gtest.h>

#include "limpid/error.hpp"

namespace limpid {
namespace {

MixFacts facts(int64_t n_layers = 32, int64_t n_kv_heads = 8) {
  return {"llama", n_layers, 32, n_kv_heads, false, false};
}

DType type_of(std::string_view file_type, std::string_view name, const MixFacts& mix = facts(),
              int64_t n_cols = 4096) {
  return mixed_type(file_type_from_name(file_type), mix, name, Shape{64, n_cols}).dtype;
}

TEST(FileType, NamesAreFoundInAnyCase) {
  EXPECT_EQ(file_type_from_name("Q4_K_M").id, 15);
  EXPECT_EQ(file_type_from_name("q4_k").name, "q4_k_m");
  EXPECT_EQ(file_type_from_name("bf16").dtype, DType::kBF16);
  EXPECT_THROW(file_type_from_name("q4_2"), ArgumentError);
}

// The layers that llama.cpp gives more bits in a model of 32.
TEST(FileType, MediumMixGivesSomeLayersMore) {
  std::string six_bits;
  for (int layer = 0; layer < 32; ++layer) {
    const std::string name = "blk." + std::to_string(layer) + ".ffn_down.weight";
    if (type_of("q4_k_m", name) == DType::kQ6_K) six_bits += std::to_string(layer) + " ";
  }
  EXPECT_EQ(six_bits, "0 1 2 3 6 9 12 15 18 21 24 27 28 29 30 31 ");
  EXPECT_EQ(type_of("q4_k_m", "blk.5.attn_q.weight"), DType::kQ4_K);
  EXPECT_EQ(type_of("q4_k_m", "output.weight"), DType::kQ6_K);
  EXPECT_EQ(type_of("q4_k_m", "token_embd.weight"), DType::kQ4_K);
  EXPECT_EQ(type_of("q5_k_m", "blk.0.attn_v.weight"), DType::kQ6_K);
}

TEST(FileType, OtherMixes) {
  EXPECT_EQ(type_of("q2_k", "blk.9.attn_v.weight"), DType::kQ4_K);
  EXPECT_EQ(type_of("q2_k", "blk.9.attn_v.weight", facts(32, 32)), DType::kQ3_K);
  EXPECT_EQ(type_of("q2_k", "blk.9.ffn_down.weight"), DType::kQ3_K);
  EXPECT_EQ(type_of("q2_k", "blk.9.ffn_up.weight"), DType::kQ2_K);
  EXPECT_EQ(type_of("q3_k_m", "blk.1.attn_v.weight"), DType::kQ5_K);
  EXPECT_EQ(type_of("q3_k_m", "blk.2.attn_v.weight"), DType::kQ4_K);
  EXPECT_EQ(type_of("q3_k_m", "blk.1.ffn_down.weight"), DType::kQ5_K);
  EXPECT_EQ(type_of("q3_k_l", "blk.7.attn_output.weight"), DType::kQ5_K);
  EXPECT_EQ(type_of("q4_k_s", "blk.3.attn_v.weight"), DType::kQ5_K);
  EXPECT_EQ(type_of("q4_k_s", "blk.4.attn_v.weight"), DType::kQ4_K);
  EXPECT_EQ(type_of("iq4_xs", "blk.0.ffn_down.weight"), DType::kQ5_K);
  EXPECT_EQ(type_of("q3_k_s", "blk.40.attn_v.weight", facts(80, 8)), DType::kQ5_K);
  EXPECT_EQ(type_of("q3_k_s", "blk.40.attn_v.weight", facts(80, 32)), DType::kQ3_K);
  MixFacts with_importance = facts();
  with_importance.has_importance = true;
  EXPECT_EQ(type_of("iq4_xs", "blk.0.ffn_down.weight", with_importance), DType::kIQ4_XS);
  EXPECT_EQ(type_of("q4_0", "blk.0.ffn_down.weight", with_importance), DType::kQ4_1);
  EXPECT_EQ(type_of("q4_0", "blk.0.ffn_down.weight"), DType::kQ4_0);
  EXPECT_EQ(type_of("q3_k_m", "blk.40.attn_v.weight", facts(80)), DType::kQ5_K);
}

TEST(FileType, ATiedEmbeddingIsTheOutputMatrix) {
  MixFacts tied = facts();
  tied.tied_embeddings = true;
  EXPECT_EQ(type_of("q4_0", "token_embd.weight", tied), DType::kQ6_K);
  EXPECT_EQ(type_of("q4_0", "token_embd.weight", tied, 576), DType::kQ8_0);
  EXPECT_EQ(type_of("q8_0", "token_embd.weight", tied), DType::kQ8_0);
  EXPECT_EQ(type_of("f16", "token_embd.weight", tied), DType::kF16);
}

TEST(FileType, RowsThatNoBlockDividesFallBack) {
  const auto fallback = [](std::string_view file_type, int64_t n_cols) {
    const MixedType type = mixed_type(file_type_from_name(file_type), facts(),
                                      "blk.12.ffn_gate.weight", Shape{8, n_cols});
    EXPECT_EQ(type.wanted, file_type_from_name(file_type).dtype);
    return type.dtype;
  };
  EXPECT_EQ(fallback("q2_k", 576), DType::kQ4_0);
  EXPECT_EQ(fallback("q3_k_m", 576), DType::kQ4_0);
  EXPECT_EQ(fallback("q4_k_m", 576), DType::kQ5_0);
  EXPECT_EQ(fallback("q5_k_m", 576), DType::kQ5_1);
  EXPECT_EQ(fallback("q6_k", 576), DType::kQ8_0);
  EXPECT_EQ(fallback("iq4_xs", 576), DType::kIQ4_NL);
  EXPECT_EQ(fallback("q4_0", 40), DType::kF16);
  EXPECT_EQ(fallback("q6_k", 40), DType::kF16);
}

TEST(FileType, NormsBiasesAndPositionsAreNotQuantised) {
  const Shape matrix{64, 64};
  EXPECT_TRUE(is_quantizable("blk.0.attn_q.weight", matrix));
  EXPECT_TRUE(is_quantizable("token_embd.weight", matrix));
  EXPECT_FALSE(is_quantizable("blk.0.attn_q.weight", Shape{64}));
  EXPECT_FALSE(is_quantizable("blk.0.attn_norm.weight", matrix));
  EXPECT_FALSE(is_quantizable("blk.0.attn_q.bias", matrix));
  EXPECT_FALSE(is_quantizable("position_embd.weight", matrix));
}

}  // namespace
}  // namespace limpid
