#include "export/export_model.h"

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "checkpoint/temp_file.h"
#include "expect_error.h"
#include "export/lora_export.h"
#include "layouts/hugging_face.h"
#include "layouts/lora_adapter.h"
#include "limpid/error.hpp"
#include "model/model_files.h"
#include "model/tiny_checkpoint.h"
#include "tensor/codec.h"

namespace limpid {
namespace {

// Meta's layout has no names for biases. The model is refused before a folder is created.
TEST(ExportModel, LeavesNoFolderOfAModelThatTheLayoutCannotExpress) {
  for (const char* bias : {"blk.0.attn_q.bias", "blk.0.attn_output.bias"}) {
    const auto checkpoint = testing::tiny_checkpoint();
    const auto zeros = std::make_shared<Tensor>(DType::kF32, Shape{64});
    checkpoint->owned.push_back(zeros);
    checkpoint->tensors[bias] = zeros->view();
    checkpoint->tensor_order.emplace_back(bias);
    const TempFolder folder;
    ExportOptions options;
    options.layout = Layout::kTorch;
    EXPECT_THROW(export_model(folder.path("out"), *checkpoint, options), UnsupportedError) << bias;
    EXPECT_FALSE(std::filesystem::exists(folder.path("out"))) << bias;
  }
}

// Neither Meta's parameters nor nanoGPT's name them, so they have a file of their own.
TEST(ExportModel, FoldersForTorchKeepStopTokensAndSamplers) {
  testing::TinyShape gpt2 = testing::tiny_gpt2_shape();
  gpt2.d_ff = 4 * gpt2.d_model;  // nanoGPT has no other
  for (const testing::TinyShape& shape : {testing::TinyShape{}, gpt2}) {
    const auto checkpoint = testing::tiny_checkpoint(shape);
    checkpoint->metadata.set("general.sampling.temp", {double{0.5F}, "f32"});
    checkpoint->metadata.set("general.sampling.top_k", {int64_t{20}, "i32"});
    checkpoint->metadata.set(kStopTokenIdsKey, {std::vector<int64_t>{3, 4}, "array of u32"});
    const TempFolder folder;
    ExportOptions options;
    options.layout = Layout::kTorch;
    export_model(folder.path("out"), *checkpoint, options);
    const Checkpoint again = open_model_files({folder.path("out"), ""});
    EXPECT_EQ(again.metadata.number("general.sampling.temp"), 0.5) << shape.architecture;
    EXPECT_EQ(again.metadata.integer("general.sampling.top_k"), 20) << shape.architecture;
    ASSERT_NE(again.metadata.integers(kStopTokenIdsKey), nullptr) << shape.architecture;
    EXPECT_EQ(*again.metadata.integers(kStopTokenIdsKey), (std::vector<int64_t>{3, 4}));
  }
}

// A process that is killed between two files leaves no weights without the rest of the model.
TEST(ExportModel, WeightsGetTheirNameLast) {
  for (const Layout layout : {Layout::kHuggingFace, Layout::kTorch}) {
    const bool is_torch = layout == Layout::kTorch;
    const TempFolder folder;
    ExportOptions options;
    options.layout = layout;
    options.write.progress = [&](uint64_t, uint64_t) {  // the small file cannot get its name
      std::filesystem::create_directory(folder.path(is_torch ? "params.json" : "config.json"));
      return true;
    };
    EXPECT_THROW(export_model(folder.folder(), *testing::tiny_checkpoint(), options),
                 ResourceError);
    EXPECT_FALSE(std::filesystem::exists(
        folder.path(is_torch ? "consolidated.00.pth" : "model.safetensors")));
  }
}

// A tiny model with a tokenizer of GGUF, of control tokens with the names "0", "1", "</s>", "3", …
std::shared_ptr<Checkpoint> with_tokenizer() {
  const auto checkpoint = testing::tiny_checkpoint();
  std::vector<std::string> tokens;
  for (int i = 0; i < 50; ++i) tokens.push_back(i == 2 ? "</s>" : std::to_string(i));
  Metadata& m = checkpoint->metadata;
  m.set("tokenizer.ggml.model", {std::string("llama"), "string"});
  m.set("tokenizer.ggml.tokens", {tokens, "array of string"});
  m.set("tokenizer.ggml.token_type", {std::vector<int64_t>(50, 3), "array of i32"});
  m.set("tokenizer.ggml.scores", {std::vector<double>(50), "array of f32"});
  m.set("tokenizer.ggml.unknown_token_id", {int64_t{0}, "u32"});
  return checkpoint;
}

// "</s>" ends an answer by its name, whatever the model states. It is written only where the model
// states nothing.
TEST(ExportModel, FoldersNameTheStopTokensThatTheModelStates) {
  const auto checkpoint = with_tokenizer();
  using Ids = std::vector<int64_t>;
  for (const auto& [stated, expected] :
       {std::pair{Ids{}, "2"}, {Ids{3}, "3"}, {Ids{4, 3}, "[4,3]"}}) {
    if (!stated.empty()) checkpoint->metadata.set(kStopTokenIdsKey, {stated, "array of u32"});
    const TempFolder folder;
    ExportOptions options;
    options.layout = Layout::kHuggingFace;
    export_model(folder.path("out"), *checkpoint, options);
    for (const char* name : {"out/config.json", "out/generation_config.json"}) {
      std::ifstream file(folder.path(name));
      EXPECT_EQ(nlohmann::json::parse(file)["eos_token_id"].dump(), expected) << name;
    }
  }
  checkpoint->metadata.erase_below(kStopTokenIdsKey);
  checkpoint->metadata.set("tokenizer.ggml.eos_token_id", {int64_t{5}, "u32"});
  const TempFolder folder;
  ExportOptions options;
  options.layout = Layout::kHuggingFace;
  export_model(folder.path("out"), *checkpoint, options);
  std::ifstream file(folder.path("out/config.json"));
  EXPECT_EQ(nlohmann::json::parse(file)["eos_token_id"], 5);
}

// What a run would ignore or refuse.
TEST(ExportModel, RemarksOnWhatDoesNotFitTheModel) {
  const auto remarks = [](const std::string& key, const MetadataValue& value) {
    const auto checkpoint = with_tokenizer();
    checkpoint->metadata.set(key, value);
    const TempFolder folder;
    const ExportResult result = export_model(folder.path("out.gguf"), *checkpoint, {});
    return fmt::format("{}", fmt::join(result.remarks, "\n"));
  };
  using ::testing::IsSubstring;
  EXPECT_PRED_FORMAT2(IsSubstring, "tiny: tokenizer.ggml.bos_token_id: is 50, outside a vocabulary",
                      remarks("tokenizer.ggml.bos_token_id", {int64_t{50}, "u32"}));
  EXPECT_PRED_FORMAT2(IsSubstring, "eos_token_id 99 is outside the vocabulary of 50 tokens",
                      remarks(kStopTokenIdsKey, {std::vector<int64_t>{3, 99}, "array of u32"}));
  EXPECT_PRED_FORMAT2(IsSubstring,
                      "the tokenizer cannot be read: tiny: tokenizer.ggml.model is 'bert'",
                      remarks("tokenizer.ggml.model", {std::string("bert"), "string"}));
  EXPECT_PRED_FORMAT2(IsSubstring, "the chat template does not parse",
                      remarks("tokenizer.chat_template", {std::string("{% if %}"), "string"}));
  EXPECT_EQ(remarks("general.name", {std::string("tiny"), "string"}), "");
  const auto checkpoint = with_tokenizer();
  checkpoint->format = "gguf v3";
  checkpoint->metadata.set(kStopTokenIdsKey, {std::vector<int64_t>{99}, "array of u32"});
  const TempFolder folder;
  EXPECT_EQ(export_model(folder.path("out.gguf"), *checkpoint, {}).remarks.at(0),
            "tiny: tokenizer.stop_token_ids 99 is outside the vocabulary of 50 tokens; correct it");
}

// JSON cannot hold the text. The model is refused before a folder is created.
TEST(ExportModel, ATemplateThatIsNotUtf8IsRefusedByItsKey) {
  const auto checkpoint = testing::tiny_checkpoint();
  checkpoint->metadata.set("tokenizer.chat_template.rag", {std::string("\xff"), "string"});
  for (const Layout layout : {Layout::kHuggingFace, Layout::kTorch}) {
    const TempFolder folder;
    ExportOptions options;
    options.layout = layout;
    expect_error<FormatError>([&] { export_model(folder.path("out"), *checkpoint, options); },
                              {"tokenizer.chat_template.rag"});
    EXPECT_FALSE(std::filesystem::exists(folder.path("out")));
  }
}

// The rows of B are in the order of the class of transformers: interleaved pairs in ERNIE 4.5.
TEST(ExportLora, RowsComeBackAsTheyWere) {
  for (const char* architecture : {"llama", "ernie4_5"}) {
    testing::TinyShape shape;
    shape.architecture = architecture;
    Checkpoint model = *testing::tiny_checkpoint(shape);
    Checkpoint adapted = model;
    std::vector<float> rows(64);
    for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<float>(i);
    const LoraNames names = lora_names("blk.0.attn_q.weight", 0);
    adapted.add(names.a, Tensor::of(Shape{1, 64}, rows));
    adapted.add(names.b, Tensor::of(Shape{64, 1}, rows));
    const TempFolder folder;
    export_lora_adapter(folder.path("adapter"), adapted, 0, "model");
    const Checkpoint written =
        open_checkpoint(folder.path("adapter") + "/adapter_model.safetensors");
    const std::string b = "base_model.model.model.layers.0.self_attn.q_proj.lora_B.weight";
    Tensor storage;
    // The second row of a pair is the next one in interleaved order, the ninth in halves of 16.
    EXPECT_EQ(decode(written.read(b, storage))[1], shape.architecture == "llama" ? 1 : 8);
    add_lora_adapter(model, folder.path("adapter"));
    EXPECT_EQ(decode(model.read(names.b, storage)), rows) << architecture;
  }
}

}  // namespace
}  // namespace limpid
