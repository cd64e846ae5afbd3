#include "model/configuration.h"

#include <gtest/gtest.h>

#include <map>

#include "checkpoint/temp_file.h"
#include "data_paths.h"
#include "expect_error.h"
#include "limpid/error.hpp"
#include "model/decoder_from_checkpoint.h"

namespace limpid {
namespace {

int64_t parameters_of(const Checkpoint& checkpoint) {
  int64_t n = 0;
  for (const auto& [name, tensor] : checkpoint.tensors) n += tensor.shape.n_elements();
  return n;
}

// As their publishers count them (model cards; the sums that transformers gives).
TEST(Configuration, CountsTheParametersOfPublishedModels) {
  const std::map<std::string_view, int64_t> published = {
      {"llama-2-7b", 6'738'415'616},
      {"llama-2-13b", 13'015'864'320},
      {"llama-2-70b", 68'976'648'192},
      {"llama-3-8b", 8'030'261'248},
      {"llama-3-70b", 70'553'706'496},
      {"llama-3.1-8b", 8'030'261'248},
      {"llama-3.1-70b", 70'553'706'496},
      {"llama-3.1-405b", 405'853'388'800},
      {"llama-3.2-1b", 1'235'814'400},
      {"llama-3.2-3b", 3'212'749'824},
      {"mistral-7b-v0.3", 7'248'023'552},
      {"smollm2-135m", 134'515'008},
      {"smollm2-360m", 361'821'120},
      {"smollm2-1.7b", 1'711'376'384},
      {"qwen2.5-0.5b", 494'032'768},
      {"qwen2.5-7b", 7'615'616'512},
      {"qwen3-0.6b", 596'049'920},
      {"qwen3-8b", 8'190'735'360},
      {"nanogpt-char-cpu", 809'856},
      {"nanogpt-char", 10'770'816},
      {"gpt-nano", 4'958'736},
      {"gpt-micro", 13'790'208},
      {"gpt-mini", 22'164'864},
      {"gopher-44m", 77'207'552},
      {"gpt2-124m", 124'439'808},
      {"gpt2", 124'439'808},
      {"gpt2-medium", 354'823'168},
      {"gpt2-large", 774'030'080},
      {"gpt2-xl", 1'557'611'200},
  };
  EXPECT_EQ(published.size(), configuration_names().size());
  for (const auto& [name, n] : published)
    EXPECT_EQ(parameters_of(named_configuration(name)), n) << name;
}

TEST(Configuration, IsASpecLikeAnyOther) {
  const DecoderSpec spec = read_spec(named_configuration("llama-3.2-1b"));
  EXPECT_TRUE(spec.tied_embeddings);
  EXPECT_EQ(spec.n_kv_heads, 8);
  EXPECT_EQ(spec.rope.scaling, "llama3");
  EXPECT_EQ(spec.rope.scaling_factor, 32.0);
  EXPECT_EQ(read_spec(named_configuration("gpt2-xl")).position, PositionKind::kLearned);
}

// What the publishers' own files say, without the weights.
TEST(Configuration, IsReadFromFiles) {
  const auto parameters = [](const char* name, const char* text) {
    const TempFolder folder;
    folder.write(name, text);
    return parameters_of(configuration_of_files(folder.folder()));
  };
  EXPECT_EQ(parameters("params.json", R"({"dim": 4096, "n_layers": 32, "n_heads": 32,
    "n_kv_heads": 8, "vocab_size": 128256, "multiple_of": 1024, "ffn_dim_multiplier": 1.3,
    "norm_eps": 1e-05, "rope_theta": 500000.0})"),
            8'030'261'248);
  EXPECT_EQ(parameters("config.json", R"({"architectures": ["LlamaForCausalLM"],
    "model_type": "llama", "hidden_size": 2048, "intermediate_size": 8192, "vocab_size": 128256,
    "num_hidden_layers": 16, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 64,
    "max_position_embeddings": 131072, "rms_norm_eps": 1e-05, "rope_theta": 500000.0,
    "hidden_act": "silu", "tie_word_embeddings": true, "attention_bias": false,
    "rope_scaling": {"factor": 32.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0,
    "original_max_position_embeddings": 8192, "rope_type": "llama3"}})"),
            1'235'814'400);
  EXPECT_EQ(parameters("config.json", R"({"architectures": ["Qwen2ForCausalLM"],
    "model_type": "qwen2", "hidden_size": 896, "intermediate_size": 4864, "vocab_size": 151936,
    "num_hidden_layers": 24, "num_attention_heads": 14, "num_key_value_heads": 2,
    "max_position_embeddings": 32768, "rms_norm_eps": 1e-06, "rope_theta": 1000000.0,
    "hidden_act": "silu", "tie_word_embeddings": true, "use_sliding_window": false})"),
            494'032'768);
  EXPECT_EQ(parameters("config.json", R"({"architectures": ["GPT2LMHeadModel"],
    "model_type": "gpt2", "n_embd": 768, "n_layer": 12, "n_head": 12, "n_positions": 1024,
    "n_ctx": 1024, "vocab_size": 50257, "activation_function": "gelu_new",
    "layer_norm_epsilon": 1e-05})"),
            124'439'808);
  EXPECT_THROW(configuration_of_files(testing::test_data_path("")), ArgumentError);
  EXPECT_THROW(parameters("params.json", R"({"dim": 64, "n_layers": 1, "n_heads": 4,
    "vocab_size": -1})"),
               FormatError);
  // Each size is within its limit, but a matrix would have 2^64 elements.
  EXPECT_THROW(parameters("config.json", R"({"architectures": ["LlamaForCausalLM"],
    "model_type": "llama", "hidden_size": 16777216, "intermediate_size": 64, "vocab_size": 10,
    "num_hidden_layers": 1, "num_attention_heads": 16777216, "num_key_value_heads": 16777216,
    "head_dim": 65536, "max_position_embeddings": 16, "rms_norm_eps": 1e-05,
    "rope_theta": 10000.0, "hidden_act": "silu", "tie_word_embeddings": true})"),
               FormatError);
}

// Mistral publishes both files in one folder, and the weights beside them follow config.json.
TEST(Configuration, OfAFolderWithBothFilesIsConfigJson) {
  const TempFolder folder;
  folder.write("config.json", R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama",
    "hidden_size": 64, "intermediate_size": 128, "vocab_size": 100, "num_hidden_layers": 3,
    "num_attention_heads": 4, "num_key_value_heads": 4, "max_position_embeddings": 512,
    "rms_norm_eps": 1e-05, "rope_theta": 10000.0, "hidden_act": "silu",
    "tie_word_embeddings": true})");
  folder.write("params.json", R"({"dim": 64, "n_layers": 1, "n_heads": 4, "vocab_size": 100})");
  const DecoderSpec spec = read_spec(configuration_of_files(folder.folder()));
  EXPECT_EQ(spec.n_layers, 3);
  EXPECT_EQ(spec.n_ctx_train, 512);
}

// The system refuses to look up such a name.
TEST(Configuration, OfANameThatIsTooLongForAFileIsRefused) {
  const std::string name(5000, 'a');
  EXPECT_THROW(find_configuration(name), ResourceError);
  EXPECT_THROW(configuration_of_files(name), ResourceError);
}

TEST(Configuration, OfAnUnknownNameListsTheKnown) {
  expect_error<ArgumentError>([] { named_configuration("llama-4"); }, {"llama-3-8b"});
}

}  // namespace
}  // namespace limpid
