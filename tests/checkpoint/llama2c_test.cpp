#include "checkpoint/llama2c.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include "checkpoint/llama2c_builder.h"
#include "checkpoint/temp_file.h"
#include "data_paths.h"
#include "limpid/error.hpp"

namespace limpid {
namespace {

using llama2c_test::Sizes;

std::span<const std::byte> as_span(const std::string& bytes) {
  return std::as_bytes(std::span(bytes.data(), bytes.size()));
}

// Bytes 28 and on of a legacy file are aligned to four when its first byte is.
void expect_weights(const Checkpoint& checkpoint, const std::string& name, Shape shape, int tag) {
  const TensorView* view = checkpoint.find(name);
  ASSERT_NE(view, nullptr) << name;
  EXPECT_EQ(view->shape, shape) << name;
  const int64_t last = shape.n_elements() - 1;
  EXPECT_EQ(view->f32()[0], static_cast<float>(tag)) << name;
  EXPECT_EQ(view->f32()[last], static_cast<float>(tag) + static_cast<float>(last) / 65536.0f)
      << name;
}

class Llama2cLayouts : public ::testing::TestWithParam<std::tuple<bool, bool>> {};

TEST_P(Llama2cLayouts, TensorsHaveTheNamesShapesAndPlacesOfTheirKind) {
  const auto [legacy, tied] = GetParam();
  const Sizes sizes;
  const std::string bytes =
      legacy ? llama2c_test::legacy_file(sizes, tied) : llama2c_test::v1_file(sizes, tied);
  const Checkpoint checkpoint = parse_llama2c("m.bin", as_span(bytes));
  EXPECT_EQ(checkpoint.format, legacy ? "llama2c legacy" : "llama2c v1");
  EXPECT_EQ(checkpoint.tensors.size(), (tied ? 2u : 3u) + 9u * 2);
  EXPECT_EQ(checkpoint.tensor_order.size(), checkpoint.tensors.size());
  expect_weights(checkpoint, "token_embd.weight", {10, 8}, 0);
  expect_weights(checkpoint, "output_norm.weight", {8}, 10);
  EXPECT_EQ(checkpoint.find("output.weight") == nullptr, tied);
  if (!tied) expect_weights(checkpoint, "output.weight", {10, 8}, 11);
  for (int layer = 0; layer < 2; ++layer) {
    const std::string blk = "blk." + std::to_string(layer) + ".";
    const int tag = 100 * layer;
    expect_weights(checkpoint, blk + "attn_norm.weight", {8}, tag + 1);
    expect_weights(checkpoint, blk + "attn_q.weight", {8, 8}, tag + 2);
    expect_weights(checkpoint, blk + "attn_k.weight", {4, 8}, tag + 3);
    expect_weights(checkpoint, blk + "attn_v.weight", {4, 8}, tag + 4);
    expect_weights(checkpoint, blk + "attn_output.weight", {8, 8}, tag + 5);
    expect_weights(checkpoint, blk + "ffn_norm.weight", {8}, tag + 6);
    expect_weights(checkpoint, blk + "ffn_gate.weight", {12, 8}, tag + 7);
    expect_weights(checkpoint, blk + "ffn_down.weight", {8, 12}, tag + 8);
    expect_weights(checkpoint, blk + "ffn_up.weight", {12, 8}, tag + 9);
  }
}

TEST_P(Llama2cLayouts, EveryTruncationAndExtensionIsAFormatError) {
  const auto [legacy, tied] = GetParam();
  const Sizes sizes;
  std::string bytes =
      legacy ? llama2c_test::legacy_file(sizes, tied) : llama2c_test::v1_file(sizes, tied);
  for (size_t size = 0; size < bytes.size(); ++size) {
    const std::vector<char> cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_THROW(parse_llama2c("cut.bin", std::as_bytes(std::span(cut))), FormatError) << size;
  }
  bytes += '\0';
  EXPECT_THROW(parse_llama2c("long.bin", as_span(bytes)), FormatError);
}

INSTANTIATE_TEST_SUITE_P(All, Llama2cLayouts,
                         ::testing::Combine(::testing::Bool(), ::testing::Bool()),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param) ? "Legacy" : "V1") +
                                  (std::get<1>(info.param) ? "Tied" : "Untied");
                         });

TEST(Llama2c, MetadataAreThoseOfAGgufLlama) {
  const std::string bytes = llama2c_test::legacy_file(Sizes{}, false);
  const Metadata metadata = parse_llama2c("m.bin", as_span(bytes)).metadata;
  EXPECT_EQ(metadata.string("general.architecture"), "llama");
  EXPECT_EQ(metadata.integer("llama.context_length"), 6);
  EXPECT_EQ(metadata.integer("llama.embedding_length"), 8);
  EXPECT_EQ(metadata.integer("llama.block_count"), 2);
  EXPECT_EQ(metadata.integer("llama.feed_forward_length"), 12);
  EXPECT_EQ(metadata.integer("llama.vocab_size"), 10);
  EXPECT_EQ(metadata.integer("llama.rope.dimension_count"), 2);
  EXPECT_EQ(metadata.integer("llama.attention.head_count"), 4);
  EXPECT_EQ(metadata.integer("llama.attention.head_count_kv"), 2);
  EXPECT_FLOAT_EQ(static_cast<float>(*metadata.number("llama.attention.layer_norm_rms_epsilon")),
                  1e-5f);
  EXPECT_EQ(metadata.number("llama.rope.freq_base"), 10000.0);
}

// A legacy file has no magic, so it is recognised by sizes that fit together. The offset of the
// error is that of the size that does not fit.
TEST(Llama2c, ImpossibleSizesAreNamed) {
  struct Case {
    void (*spoil)(Sizes&);
    const char* field;
    uint64_t offset;
  };
  const Case cases[] = {{[](Sizes& s) { s.dim = 0; }, "header.dim", 8},
                        {[](Sizes& s) { s.dim = 1 << 21; }, "header.dim", 8},
                        {[](Sizes& s) { s.hidden_dim = -1; }, "header.hidden_dim", 12},
                        {[](Sizes& s) { s.n_layers = 5000; }, "header.n_layers", 16},
                        {[](Sizes& s) { s.n_heads = 3; }, "header.n_heads", 20},
                        {[](Sizes& s) { s.n_heads = 8; }, "header.n_heads", 20},  // a head of one
                        {[](Sizes& s) { s.n_kv_heads = 3; }, "header.n_kv_heads", 24},
                        {[](Sizes& s) { s.vocab_size = -10; }, "header.vocab_size", 28},
                        {[](Sizes& s) { s.seq_len = 0; }, "header.seq_len", 32}};
  for (const Case& test : cases) {
    Sizes sizes;
    test.spoil(sizes);
    std::string bytes = llama2c_test::v1_file(Sizes{}, true);
    bytes.replace(8, 28, llama2c_test::header(sizes));
    try {
      parse_llama2c("m.bin", as_span(bytes));
      FAIL() << test.field;
    } catch (const FormatError& error) {
      EXPECT_EQ(error.field(), test.field);
      EXPECT_EQ(error.offset(), test.offset);
    }
    EXPECT_EQ(looks_like_llama2c_legacy(as_span(llama2c_test::header(sizes))),
              sizes.vocab_size == -10)
        << test.field;
  }
}

TEST(Llama2c, TheSmallestVocabSizeIsNoMagnitude) {
  Sizes sizes;
  sizes.vocab_size = INT32_MIN;
  EXPECT_FALSE(looks_like_llama2c_legacy(as_span(llama2c_test::header(sizes))));
}

TEST(Llama2c, OtherVersionsAreRefused) {
  std::string bytes = llama2c_test::v1_file(Sizes{}, true);
  bytes[4] = 2;
  EXPECT_THROW(parse_llama2c("m.bin", as_span(bytes)), UnsupportedError);
  bytes[4] = 3;
  EXPECT_THROW(parse_llama2c("m.bin", as_span(bytes)), FormatError);
  bytes[4] = 1;
  bytes[36] = 2;  // neither shared nor not
  EXPECT_THROW(parse_llama2c("m.bin", as_span(bytes)), FormatError);
}

TEST(Llama2cTokenizer, BecomesASentencePieceVocabulary) {
  Metadata metadata;
  const std::string bytes = llama2c_test::tokenizer_file();
  parse_llama2c_tokenizer("t.bin", as_span(bytes), llama2c_test::kTokens, metadata);
  const auto& tokens = *metadata.strings("tokenizer.ggml.tokens");
  const auto& types = *metadata.integers("tokenizer.ggml.token_type");
  const auto& scores = *metadata.numbers("tokenizer.ggml.scores");
  EXPECT_EQ(metadata.string("tokenizer.ggml.model"), "llama");
  EXPECT_EQ(tokens[0], "<unk>");
  EXPECT_EQ(tokens[1], "<s>");
  EXPECT_EQ(tokens[2], "</s>");
  EXPECT_EQ(tokens[3 + 0x20], "<0x20>");
  EXPECT_EQ(tokens[259], "\u2581t");
  EXPECT_EQ(tokens[260], "\u2581a\u2581b\u2581");
  EXPECT_EQ(std::vector<int64_t>(types.begin(), types.begin() + 4),
            (std::vector<int64_t>{2, 3, 3, 6}));
  EXPECT_EQ(types[258], 6);
  EXPECT_EQ(types[259], 1);
  EXPECT_EQ(scores[260], -2.0);
  EXPECT_EQ(metadata.integer("tokenizer.ggml.bos_token_id"), 1);
  EXPECT_EQ(metadata.integer("tokenizer.ggml.eos_token_id"), 2);
}

TEST(Llama2cTokenizer, EveryTruncationIsAFormatError) {
  const std::string bytes = llama2c_test::tokenizer_file();
  for (size_t size = 0; size < bytes.size(); ++size) {
    const std::vector<char> cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
    Metadata metadata;
    EXPECT_THROW(parse_llama2c_tokenizer("t.bin", std::as_bytes(std::span(cut)),
                                         llama2c_test::kTokens, metadata),
                 FormatError);
  }
}

TEST(Llama2cTokenizer, AnotherModelsVocabularyIsRefused) {
  const std::string bytes = llama2c_test::tokenizer_file();
  Metadata metadata;
  EXPECT_THROW(
      parse_llama2c_tokenizer("t.bin", as_span(bytes), llama2c_test::kTokens - 1, metadata),
      FormatError);
  EXPECT_THROW(
      parse_llama2c_tokenizer("t.bin", as_span(bytes), llama2c_test::kTokens + 1, metadata),
      FormatError);
}

TEST(Llama2cTokenizer, MalformedEntriesAreNamed) {
  struct Case {
    size_t offset;
    int32_t value;
    const char* field;
  };
  const Case cases[] = {{0, 0, "max_token_length"},
                        {0, 1 << 20, "max_token_length"},
                        {4, 0x7fc00000, "token[0].score"},
                        {8, -1, "token[0].length"},
                        {8, 8, "token[0].length"},
                        {8 + 4 + 5 + 8 + 5 + 8 + 6 + 8, 0x3178303c, "token[3].piece"}};  // "<0x1"
  for (const Case& test : cases) {
    std::string bytes = llama2c_test::tokenizer_file();
    std::memcpy(bytes.data() + test.offset, &test.value, 4);
    Metadata metadata;
    try {
      parse_llama2c_tokenizer("t.bin", as_span(bytes), llama2c_test::kTokens, metadata);
      FAIL() << test.field;
    } catch (const FormatError& error) {
      EXPECT_EQ(error.field(), test.field);
      EXPECT_EQ(error.offset(), test.offset);
    }
  }
}

TEST(OpenLlama2c, TakesTheTokenizerBesideTheModel) {
  TempFolder folder;
  Sizes sizes;
  sizes.vocab_size = llama2c_test::kTokens;
  const std::string path = folder.write("m.bin", llama2c_test::v1_file(sizes, true));
  EXPECT_EQ(open_checkpoint(path).metadata.strings("tokenizer.ggml.tokens"), nullptr);
  folder.write("tokenizer.bin", llama2c_test::tokenizer_file());
  EXPECT_NE(open_checkpoint(path).metadata.strings("tokenizer.ggml.tokens"), nullptr);
  folder.write("tok262.bin", "broken");  // the one that carries the size in its name comes first
  EXPECT_THROW(open_checkpoint(path), FormatError);
  EXPECT_NO_THROW(open_checkpoint(path, folder.path("tokenizer.bin")));
  EXPECT_THROW(open_checkpoint(path, folder.path("absent.bin")), ResourceError);
}

const std::string kStories260K = testing::test_data_path("stories260K/stories260K.bin");

TEST(Llama2c, OpensStories260KWithItsTokenizer) {
  const Checkpoint checkpoint = open_checkpoint(kStories260K);
  EXPECT_EQ(checkpoint.tensors.size(), 2u + 9 * 5);
  EXPECT_EQ(checkpoint.metadata.integer("llama.attention.head_count_kv"), 4);
  const auto& tokens = *checkpoint.metadata.strings("tokenizer.ggml.tokens");
  EXPECT_EQ(tokens.size(), 512u);
  EXPECT_EQ(tokens[259], "\u2581t");
}

class Llama2cShared : public ::testing::Test {
 protected:
  static std::string model(const std::string& name) {
    return testing::shared_data_path("models/" + std::string(name));
  }
  void SetUp() override {
    if (!std::filesystem::exists(model("stories260K/stories260K_v1.bin"))) {
      GTEST_SKIP() << "needs " << model("stories260K/stories260K_v1.bin");
    }
  }
};

TEST_F(Llama2cShared, BothLayoutsOfStories260KHoldTheSameTensors) {
  const Checkpoint legacy = open_checkpoint(kStories260K);
  const Checkpoint v1 = open_checkpoint(model("stories260K/stories260K_v1.bin"));
  ASSERT_EQ(legacy.tensors.size(), v1.tensors.size());
  for (const auto& [name, view] : legacy.tensors) {
    const TensorView* other = v1.find(name);
    ASSERT_NE(other, nullptr) << name;
    ASSERT_EQ(view.shape, other->shape) << name;
    EXPECT_EQ(std::memcmp(view.data, other->data, view.n_bytes()), 0) << name;
  }
}

TEST_F(Llama2cShared, Stories15MAndLlama2xsOpen) {
  const Checkpoint big = open_checkpoint(model("stories15M/stories15M.bin"));
  EXPECT_EQ(big.find("token_embd.weight")->shape, (Shape{32000, 288}));
  EXPECT_EQ(big.metadata.strings("tokenizer.ggml.tokens")->size(), 32000u);
  const Checkpoint xs =
      open_checkpoint(model("llama2xs/llama2xs_model.bin"), model("stories260K/tok512.bin"));
  EXPECT_EQ(xs.metadata.integer("llama.feed_forward_length"), 192);
  // The tokenizer of another model is refused.
  EXPECT_THROW(
      open_checkpoint(model("llama2xs/llama2xs_model.bin"), model("stories15M/tokenizer.bin")),
      FormatError);
}

}  // namespace
}  // namespace limpid
