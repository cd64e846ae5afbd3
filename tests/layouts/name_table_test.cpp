#include "layouts/name_table.h"

#include <gtest/gtest.h>

#include "limpid/error.hpp"

namespace limpid {
namespace {

constexpr NameRule kRules[] = {
    {"wte.weight", "token_embd.weight"},
    {"h.{}.attn.c_attn.*", "blk.{}.attn_qkv.*", TensorTransform::kTransposed},
    {"h.{}.ln_1.weight", "blk.{}.attn_norm.weight"},
};
constexpr UnusedRule kLeft[] = {{"h.{}.attn.masked_bias"}};
constexpr OptionalPrefix kPrefixes[] = {{"_orig_mod."}, {"transformer."}, {"blocks.", "h."}};
constexpr NameTable kTable{kRules, kLeft, kPrefixes};

void add(Checkpoint& checkpoint, const std::string& name, const Tensor& tensor) {
  checkpoint.tensors[name] = tensor.view();
  checkpoint.tensor_order.push_back(name);
}

TEST(NameTable, MatchesTheNumberOfABlock) {
  EXPECT_EQ(match_name("h.{}.w", "h.12.w"), 12);
  EXPECT_EQ(match_name("w", "w"), 0);
  for (const char* name : {"h..w", "h.1.2.w", "h.-1.w", "h.01.w", "h.1x.w", "h.1", "x.1.w",
                           "h.99999999999999999999.w"}) {
    EXPECT_EQ(match_name("h.{}.w", name), std::nullopt) << name;
  }
}

TEST(NameTable, TranslatesThereAndBack) {
  EXPECT_EQ(their_name(kTable, "blk.3.attn_norm.weight"), "h.3.ln_1.weight");
  EXPECT_EQ(their_name(kTable, "blk.3.attn_qkv.bias"), "h.3.attn.c_attn.bias");
  EXPECT_EQ(their_name(kTable, "blk.3.attn_norm.bias"), std::nullopt);
  EXPECT_EQ(their_name(kTable, "output.weight"), std::nullopt);
}

TEST(NameTable, RenamesTransposesAndLeaves) {
  const Tensor matrix = Tensor::of(Shape{2, 3}, std::vector<float>{1, 2, 3, 4, 5, 6});
  const Tensor vector = Tensor::of(Shape{2}, std::vector<float>{7, 8});
  Checkpoint checkpoint;
  add(checkpoint, "_orig_mod.transformer.wte.weight", matrix);
  add(checkpoint, "transformer.h.0.attn.c_attn.weight", matrix);
  add(checkpoint, "transformer.h.0.attn.c_attn.bias", vector);
  add(checkpoint, "h.0.attn.masked_bias", vector);
  add(checkpoint, "transformer.blocks.0.ln_1.weight", vector);
  const Checkpoint result = translate_names(checkpoint, kTable);

  EXPECT_EQ(result.tensor_order,
            (std::vector<std::string>{"token_embd.weight", "blk.0.attn_qkv.weight",
                                      "blk.0.attn_qkv.bias", "blk.0.attn_norm.weight"}));
  EXPECT_EQ(result.unused_tensors, std::vector<std::string>{"h.0.attn.masked_bias"});
  EXPECT_EQ(result.find("token_embd.weight")->data, matrix.view().data);
  EXPECT_EQ(result.find("blk.0.attn_qkv.bias")->data, vector.view().data);
  Tensor storage;
  const TensorView transposed = result.read("blk.0.attn_qkv.weight", storage);
  ASSERT_EQ(transposed.shape, (Shape{3, 2}));
  EXPECT_EQ(std::vector<float>(transposed.f32(), transposed.f32() + 6),
            (std::vector<float>{1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(result.derived.at("blk.0.attn_qkv.weight").how, "transposed");
}

std::string with_prefixes(int n, const std::string& name) {
  std::string result;
  for (int i = 0; i < n; ++i) result += "transformer.";
  return result + name;
}

// Each prefix is one call deeper, so a file must not decide how many there are.
TEST(NameTable, RemovesAFewPrefixesOnly) {
  EXPECT_EQ(our_name(kTable, with_prefixes(8, "wte.weight")), "token_embd.weight");
  EXPECT_EQ(our_name(kTable, with_prefixes(9, "wte.weight")), std::nullopt);
  const Tensor vector = Tensor::of(Shape{2}, std::vector<float>{7, 8});
  Checkpoint hostile;
  add(hostile, with_prefixes(100'000, "wte.weight"), vector);
  EXPECT_THROW(translate_names(hostile, kTable), UnsupportedError);
}

TEST(NameTable, RefusesWhatItDoesNotKnowAndWhatIsThereTwice) {
  const Tensor vector = Tensor::of(Shape{2}, std::vector<float>{7, 8});
  Checkpoint unknown;
  add(unknown, "h.0.attn.gate", vector);
  EXPECT_THROW(translate_names(unknown, kTable), UnsupportedError);
  Checkpoint part;
  add(part, "h.0.attn.c_attn.scale", vector);
  EXPECT_THROW(translate_names(part, kTable), UnsupportedError);
  Checkpoint twice;
  add(twice, "h.0.ln_1.weight", vector);
  add(twice, "transformer.h.0.ln_1.weight", vector);
  EXPECT_THROW(translate_names(twice, kTable), FormatError);
  Checkpoint no_matrix;
  add(no_matrix, "h.0.attn.c_attn.weight", vector);
  EXPECT_THROW(translate_names(no_matrix, kTable), FormatError);
}

}  // namespace
}  // namespace limpid
