#include "layouts/lora_adapter.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "checkpoint/safetensors_builder.h"
#include "checkpoint/temp_file.h"
#include "limpid/error.hpp"
#include "model/tiny_checkpoint.h"

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
                   const testing::TinyShape& shape = {}, const std::string& more = "") {
  const TempFolder folder;
  folder.write("adapter_config.json",
               R"({"peft_type": "LORA", "r": 1, "lora_alpha": 2)" + more + "}");
  folder.write("adapter_model.safetensors", safetensors_test::file_of(header, n_matrices * kBytes));
  Checkpoint canonical = *testing::tiny_checkpoint(shape);
  add_lora_adapter(canonical, folder.folder());
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
  EXPECT_THROW(adapted("{" + a + "}", 1), FormatError);  // without B
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
}

}  // namespace
}  // namespace limpid
