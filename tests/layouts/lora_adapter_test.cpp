#include "layouts/lora_adapter.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "checkpoint/safetensors_builder.h"
#include "checkpoint/safetensors_writer.h"
#include "checkpoint/temp_file.h"
#include "expect_error.h"
#include "limpid/error.hpp"
#include "model/tiny_checkpoint.h"
#include "tensor/codec.h"

namespace limpid {
namespace {

constexpr size_t kBytes = 64 * sizeof(float);  // of A [1, 64] and of B [64, 1]

// The i-th member of the header of adapter_model.safetensors.
std::string member(const std::string& name, const char* shape, size_t i) {
  return fmt::format(R"("{}":{{"dtype":"F32","shape":{},"data_offsets":[{},{}]}})", name, shape,
                     i * kBytes, (i + 1) * kBytes);
}

// Adds an adapter of rank 1 with that header to a tiny model.
Checkpoint adapted(const std::string& header, size_t n_matrices,
                   const testing::TinyShape& shape = {}, const std::string& more = "",
                   double scale = 1) {
  const TempFolder folder;
  folder.write("adapter_config.json",
               R"({"peft_type": "LORA", "r": 1, "lora_alpha": 2)" + more + "}");
  folder.write("adapter_model.safetensors", safetensors_test::file_of(header, n_matrices * kBytes));
  Checkpoint canonical = *testing::tiny_checkpoint(shape);
  add_lora_adapter(canonical, folder.folder(), scale);
  return canonical;
}

TEST(LoraAdapter, IsTwoMatricesAndAScale) {
  const std::string at = "base_model.model.model.layers.1.self_attn.q_proj.";
  const std::string a = member(at + "lora_A.weight", "[1,64]", 0);
  const std::string b = member(at + "lora_B.weight", "[64,1]", 1);
  const Checkpoint whole = adapted("{" + a + "," + b + "}", 2);
  EXPECT_EQ(n_lora_adapters(whole), 1);
  EXPECT_EQ(whole.metadata.number(lora_scale_key(0)), 2.0);
  EXPECT_NE(whole.find("blk.1.attn_q.weight.lora_a.0"), nullptr);
  EXPECT_NE(whole.find("blk.1.attn_q.weight.lora_b.0"), nullptr);
  EXPECT_THROW(adapted("{" + a + "}", 1), FormatError);                            // without B
  EXPECT_THROW(adapted("{" + a + "," + b + "}", 2, {}, "", 1e39), ArgumentError);  // beyond f32
}

// Either one would give another model than its author meant, without a word.
TEST(LoraAdapter, WithoutMatricesOrWithOneTwiceIsRefused) {
  EXPECT_THROW(adapted("{}", 0), FormatError);
  const std::string module = "h.1.attn.c_proj.";
  const std::string a = member("base_model.model." + module + "lora_A.weight", "[1,64]", 0);
  const std::string b = member("base_model.model." + module + "lora_B.weight", "[64,1]", 1);
  const std::string again =
      member("base_model.model.transformer." + module + "lora_A.weight", "[1,64]", 2);
  EXPECT_NO_THROW(adapted("{" + a + "," + b + "}", 2, testing::tiny_gpt2_shape()));
  EXPECT_THROW(adapted("{" + a + "," + b + "," + again + "}", 3, testing::tiny_gpt2_shape()),
               FormatError);
}

// PEFT changes the model's weights when it loads such an adapter; the sum would be another model.
TEST(LoraAdapter, OfChangedWeightsIsRefused) {
  const std::string at = "base_model.model.model.layers.1.self_attn.q_proj.";
  const std::string header = "{" + member(at + "lora_A.weight", "[1,64]", 0) + "," +
                             member(at + "lora_B.weight", "[64,1]", 1) + "}";
  const auto with = [&](const std::string& value) {
    return adapted(header, 2, {}, R"(, "init_lora_weights": )" + value);
  };
  for (const char* value : {"true", "false", R"("gaussian")", R"("eva")"})
    EXPECT_NO_THROW(with(value)) << value;
  for (const char* value :
       {R"("pissa")", R"("pissa_niter_16")", R"("olora")", R"("corda")", R"("loftq")"})
    EXPECT_THROW(with(value), UnsupportedError) << value;
}

// B's rows follow the class of transformers: interleaved pairs in ERNIE 4.5, halves in a Llama.
TEST(LoraAdapter, RowsOfQueriesAndKeysBecomeHalfSplit) {
  std::vector<float> numbers(64);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i);
  for (const bool paired : {false, true}) {
    testing::TinyShape shape;
    if (paired) shape.architecture = "ernie4_5";
    const TempFolder folder;
    folder.write("adapter_config.json", R"({"peft_type": "LORA", "r": 1, "lora_alpha": 2})");
    const Tensor a = Tensor::of(Shape{1, 64}, numbers);
    const Tensor b = Tensor::of(Shape{64, 1}, numbers);
    const Tensor wide(DType::kF32, Shape{1, 96});
    const std::string at = "base_model.model.model.layers.0.";
    const std::vector<NamedTensor> tensors = {{at + "self_attn.q_proj.lora_A.weight", a.view()},
                                              {at + "self_attn.q_proj.lora_B.weight", b.view()},
                                              {at + "mlp.down_proj.lora_A.weight", wide.view()},
                                              {at + "mlp.down_proj.lora_B.weight", b.view()}};
    write_safetensors(folder.path("adapter_model.safetensors"), {}, tensors);
    Checkpoint canonical = *testing::tiny_checkpoint(shape);
    add_lora_adapter(canonical, folder.folder());
    std::vector<float> expected = numbers;
    Tensor storage;
    EXPECT_EQ(decode(canonical.read("blk.0.ffn_down.weight.lora_b.0", storage)), expected);
    for (size_t i = 0; paired && i < expected.size(); ++i) {  // heads of 16
      const size_t in_head = i % 16;
      expected[i] = numbers[i - in_head + in_head % 8 * 2 + in_head / 8];
    }
    EXPECT_EQ(decode(canonical.read("blk.0.attn_q.weight.lora_b.0", storage)), expected) << paired;
  }
}

// The message says what is wrong, and does not suspect another model.
TEST(LoraAdapter, OfTheEmbeddingOrWithPatternsIsNotSupported) {
  const auto problem_of = [](const std::string& module, const std::string& more) -> std::string {
    const std::string a = member("base_model.model." + module, "[1,64]", 0);
    try {
      adapted("{" + a + "}", 1, {}, more);
    } catch (const UnsupportedError& error) {
      return error.what();
    }
    return "accepted";
  };
  for (const char* module :
       {"lm_head.base_layer.weight", "lm_head.lora_A.weight", "model.embed_tokens.lora_embedding_A",
        "model.embed_tokens.base_layer.weight"}) {
    EXPECT_NE(problem_of(module, "").find("of the embedding and of the output matrix"),
              std::string::npos)
        << module;
  }
  for (const std::string name : {"rank_pattern", "alpha_pattern"}) {
    const std::string problem = problem_of("model.layers.1.self_attn.q_proj.lora_A.weight",
                                           fmt::format(R"(, "{}": {{"v_proj": 2}})", name));
    EXPECT_NE(problem.find(name), std::string::npos) << problem;
    EXPECT_NE(problem.find("patterns are not supported"), std::string::npos) << problem;
  }
  const std::string problem = problem_of("model.layers.1.self_attn.q_proj.lora_A.weight",
                                         R"(, "modules_to_save": ["lm_head", "embed_tokens"])");
  EXPECT_NE(problem.find("modules_to_save is lm_head, embed_tokens: "), std::string::npos)
      << problem;
  EXPECT_NE(problem.find("merge_and_unload"), std::string::npos) << problem;
}

TEST(LoraAdapter, MayHaveAnEqualsSignInItsName) {
  const TempFolder folder;
  const std::string path = folder.path("rate=0.5");
  EXPECT_EQ(read_lora_source(path).path, folder.path("rate"));
  EXPECT_EQ(read_lora_source(path).scale, 0.5);
  std::filesystem::create_directory(path);
  EXPECT_EQ(read_lora_source(path).path, path);
  EXPECT_EQ(read_lora_source(path).scale, 1);
  EXPECT_EQ(read_lora_source(path + "=2").path, path);
  EXPECT_EQ(read_lora_source(path + "=2").scale, 2);
  EXPECT_EQ(read_lora_source("rate=high").path, "rate=high");
  expect_error<ArgumentError>([&] { read_lora_source(path + "=x"); },
                              {"the scale after = must be a number"});
}

}  // namespace
}  // namespace limpid
