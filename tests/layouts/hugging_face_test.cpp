// Hugging Face folders: the same logits as GGUF, and every key of config.json used or refused.
#include "layouts/hugging_face.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include "executor/executors.h"
#include "expect_error.h"
#include "layouts/rope_scaling.h"
#include "limpid/error.hpp"
#include "model/decoder_from_checkpoint.h"
#include "model/hugging_face_builder.h"
#include "model/model_files.h"
#include "model/run_model.h"

namespace limpid {
namespace {

using nlohmann::json;
using testing::config_of;
using testing::HuggingFaceFolder;
using testing::TinyShape;

std::vector<float> logits_of(const std::string& path, const TinyShape& shape) {
  const auto model = Model::load(std::make_shared<const Checkpoint>(open_model_files({path, ""})),
                                 make_cpu_executor({.n_threads = 1}));
  return testing::run_in_chunks(*model, testing::some_tokens(70, shape.vocab_size), 70);
}

struct Case {
  const char* name;
  TinyShape shape;
};

std::vector<Case> shapes() {
  TinyShape llama;
  TinyShape untied = llama;
  untied.tied = false;
  untied.head_dim = 10;  // not d_model / n_heads
  TinyShape qwen2 = llama;
  qwen2.architecture = "qwen2";
  qwen2.biases = true;
  TinyShape qwen3 = untied;
  qwen3.architecture = "qwen3";
  qwen3.qk_norm = true;
  return {{"llama", llama}, {"untied", untied}, {"qwen2", qwen2}, {"qwen3", qwen3}};
}

TEST(HuggingFace, GivesTheLogitsOfGgufInOneFileAndInThree) {
  for (Case& item : shapes()) {
    for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
      SCOPED_TRACE(fmt::format("{} {}", item.name, dtype_info(dtype).name));
      item.shape.dtype = dtype;
      const TempFolder gguf;
      const auto expected = logits_of(testing::write_tiny_gguf(gguf, item.shape), item.shape);
      ASSERT_TRUE(std::isfinite(expected.back()));
      EXPECT_EQ(logits_of(HuggingFaceFolder(item.shape).path(), item.shape), expected);
      EXPECT_EQ(logits_of(HuggingFaceFolder(item.shape, 3).path(), item.shape), expected);
    }
  }
}

TEST(HuggingFace, ScaledRotationsAreThoseOfGguf) {
  const TinyShape shape;
  const TempFolder gguf;
  // Llama 3: GGUF has the divisors as a tensor.
  RopeScaling scaling{RopeScalingKind::kLlama3, 8, 1, 4, 32};
  const auto divisors = rope_divisors(scaling, rope_frequencies(10000, shape.head_dim));
  const Tensor factors = Tensor::of({shape.head_dim / 2}, divisors);
  const auto expected =
      logits_of(testing::write_tiny_gguf(gguf, shape, {}, {{"rope_freqs.weight", factors}}), shape);
  json config = config_of(shape);
  config["rope_scaling"] = {{"rope_type", "llama3"},
                            {"factor", 8.0},
                            {"low_freq_factor", 1.0},
                            {"high_freq_factor", 4.0},
                            {"original_max_position_embeddings", 32}};
  EXPECT_EQ(logits_of(HuggingFaceFolder(shape, config).path(), shape), expected);
  EXPECT_NE(logits_of(HuggingFaceFolder(shape).path(), shape), expected);

  Metadata linear;
  linear.set("llama.rope.scaling.type", testing::metadata_value(std::string("linear")));
  linear.set("llama.rope.scaling.factor", testing::metadata_value(4.0));
  const TempFolder other;
  const auto stretched = logits_of(testing::write_tiny_gguf(other, shape, linear), shape);
  config["rope_scaling"] = {{"type", "linear"}, {"factor", 4.0}};
  EXPECT_EQ(logits_of(HuggingFaceFolder(shape, config).path(), shape), stretched);
}

Checkpoint open(const HuggingFaceFolder& folder) { return open_model_files({folder.path(), ""}); }

TEST(HuggingFace, RopeParametersOfTransformers5MeanTheSame) {
  const TinyShape shape;
  json older = config_of(shape);
  older["rope_theta"] = 500000.0;
  older["rope_scaling"] = {{"rope_type", "llama3"},
                           {"factor", 8.0},
                           {"low_freq_factor", 1.0},
                           {"high_freq_factor", 4.0},
                           {"original_max_position_embeddings", 64}};
  json newer = config_of(shape);
  newer.erase("rope_theta");
  newer.erase("rope_scaling");
  newer["rope_parameters"] = older["rope_scaling"];
  newer["rope_parameters"]["rope_theta"] = 500000.0;
  newer["dtype"] = "float32";
  json oldest = older;
  oldest["rope_scaling"].erase("rope_type");
  oldest["rope_scaling"]["type"] = "llama3";
  const auto expected = read_spec(open(HuggingFaceFolder(shape, older))).rope.inverse_frequencies;
  EXPECT_EQ(read_spec(open(HuggingFaceFolder(shape, newer))).rope.inverse_frequencies, expected);
  EXPECT_EQ(read_spec(open(HuggingFaceFolder(shape, oldest))).rope.inverse_frequencies, expected);
  EXPECT_LT(expected.back(), rope_frequencies(500000, shape.head_dim).back());
}

TEST(HuggingFace, PartialRotaryTurnsTheFirstElementsOfAHead) {
  json config = config_of({});
  config["partial_rotary_factor"] = 0.5;
  EXPECT_EQ(read_spec(open(HuggingFaceFolder({}, config))).rope.n_rot, 8);
  config.erase("partial_rotary_factor");
  config["rope_parameters"] = {{"rope_type", "default"}, {"partial_rotary_factor", 0.25}};
  EXPECT_EQ(read_spec(open(HuggingFaceFolder({}, config))).rope.n_rot, 4);
}

// One change of a configuration that runs, and the words of the refusal.
struct Flip {
  const char* architecture;
  const char* key;  // with '/' between the keys of nested objects
  json value;
  std::vector<std::string_view> words;
};

const std::vector<Flip>& refused() {
  static const std::vector<Flip> all = {
      {"llama", "architectures", {"LlamaForSequenceClassification"}, {"SequenceClassification"}},
      {"llama",
       "architectures",
       {"GPTNeoXForCausalLM"},
       {"GPTNeoXForCausalLM", "LlamaForCausalLM"}},
      {"llama", "model_type", "mistral", {"config.json: model_type", "mistral"}},
      {"llama", "attention_bias", true, {"q_proj.bias", "missing"}},
      {"llama", "attention_bias", "yes", {"attention_bias"}},
      {"llama", "mlp_bias", true, {"gate_proj.bias", "missing"}},
      {"llama", "hidden_act", "gelu", {"config.json: hidden_act", "gelu"}},
      {"llama",
       "hidden_activation",
       "gelu_pytorch_tanh",
       {"config.json: unknown key hidden_activation"}},
      {"llama", "sliding_window", 512, {"config.json: sliding_window", "512"}},
      {"llama", "layer_types", {"full_attention", "chunked_attention"}, {"layer_types", "chunked"}},
      {"llama", "layer_types", {"full_attention"}, {"layer_types", "1 entries for 2"}},
      {"llama", "tie_word_embeddings", false, {"lm_head.weight", "tie_word_embeddings"}},
      {"llama", "rope_scaling", {{"rope_type", "yarn"}, {"factor", 4.0}}, {"rope_type", "yarn"}},
      {"llama", "rope_scaling", {{"type", "dynamic"}, {"factor", 4.0}}, {"dynamic"}},
      {"llama", "rope_scaling", {{"rope_type", "longrope"}, {"factor", 4.0}}, {"longrope"}},
      {"llama", "rope_scaling", {{"type", "su"}, {"factor", 4.0}}, {"rope_scaling", "su"}},
      {"llama", "rope_parameters", {{"rope_type", "yarn"}, {"factor", 4.0}}, {"yarn"}},
      {"llama", "rope_parameters", {{"rope_type", "proportional"}}, {"proportional"}},
      {"qwen2", "rope_scaling", {{"type", "mrope"}, {"mrope_section", {2, 2, 4}}}, {"mrope"}},
      {"qwen3", "rope_scaling", {{"rope_type", "yarn"}, {"factor", 4.0}}, {"yarn"}},
      {"llama", "rope_scaling", {{"factor", 4.0}}, {"rope_scaling.factor"}},
      {"llama", "rope_scaling", {{"rope_type", "linear"}}, {"rope_scaling.factor", "missing"}},
      {"llama", "rope_scaling", {{"rope_type", "linear"}, {"factor", 0}}, {"above 0"}},
      {"llama",
       "rope_scaling",
       {{"rope_type", "linear"}, {"type", "llama3"}, {"factor", 2}},
       {"rope_scaling.type", "differs"}},
      {"llama",
       "rope_scaling",
       {{"rope_type", "linear"}, {"factor", 2}, {"attention_factor", 2}},
       {"attention_factor"}},
      {"llama",
       "rope_scaling",
       {{"rope_type", "llama3"}, {"factor", 8}, {"low_freq_factor", 4}, {"high_freq_factor", 1}},
       {"high_freq_factor"}},
      {"llama", "rope_scaling", {{"rope_type", "llama3"}, {"factor", 8}}, {"low_freq_factor"}},
      {"llama",
       "rope_parameters",
       {{"full_attention", {{"rope_type", "default"}, {"rope_theta", 1e4}}}},
       {"rope_parameters.full_attention"}},
      {"llama", "rope_theta", 0, {"rope_theta"}},
      {"llama", "rope_interleaved", true, {"rope_interleaved"}},
      {"qwen2", "use_mrope", true, {"use_mrope"}},
      {"llama", "partial_rotary_factor", 1.5, {"partial_rotary_factor"}},
      {"llama", "partial_rotary_factor", 0.3125, {"partial_rotary_factor", "even"}},
      {"llama", "rms_norm_eps", -1e-5, {"rms_norm_eps"}},
      {"llama", "hidden_size", nullptr, {"hidden_size", "missing"}},
      {"llama", "num_hidden_layers", 0, {"num_hidden_layers"}},
      {"llama", "num_hidden_layers", UINT64_MAX, {"num_hidden_layers", "beyond 63 bits"}},
      {"llama", "num_hidden_layers", 3, {"blk.2"}},
      {"llama", "num_hidden_layers", 1, {"blk.1"}},
      {"llama", "num_attention_heads", 1LL << 40, {"num_attention_heads"}},
      {"llama", "num_key_value_heads", 3, {"3 does not divide the number of heads, 4"}},
      {"llama", "num_key_value_heads", 5, {"num_key_value_heads"}},
      {"llama", "vocab_size", 51, {"vocab_size", "50 rows"}},
      {"llama", "intermediate_size", "96", {"intermediate_size"}},
      {"llama", "quantization_config", {{"quant_method", "gptq"}, {"bits", 4}}, {"gptq", "GGUF"}},
      {"llama", "quantization_config", {{"quant_method", "fp8"}}, {"quantization_config", "fp8"}},
      {"llama", "num_local_experts", 8, {"num_local_experts"}},
      {"llama", "logits_scaling", 8.0, {"logits_scaling"}},
      {"llama", "final_logit_softcapping", 30.0, {"final_logit_softcapping"}},
      {"llama", "attention_multiplier", 0.1, {"attention_multiplier"}},
      {"llama", "embedding_multiplier", 12, {"embedding_multiplier"}},
      {"llama", "no_rope_layers", {1, 0}, {"no_rope_layers"}},
      {"llama", "use_qk_norm", true, {"use_qk_norm"}},
      {"llama", "pruned_heads", {{"0", {1}}}, {"pruned_heads"}},
      {"llama", "add_cross_attention", true, {"add_cross_attention"}},
      {"llama", "is_encoder_decoder", true, {"is_encoder_decoder"}},
      {"llama", "is_encoder_decoder", "no", {"is_encoder_decoder", "/"}},  // names the folder
      {"llama", "something_new", 1, {"something_new", "may change the result"}},
      {"mistral", "sliding_window", 1023, {"sliding_window", "1023"}},
      {"mistral", "attention_bias", true, {"attention_bias"}},
      {"mistral", "mlp_bias", true, {"mlp_bias"}},
      {"mistral", "hidden_act", "gelu", {"config.json: hidden_act", "gelu"}},
      {"qwen2", "hidden_act", "relu", {"config.json: hidden_act", "relu"}},
      {"qwen3", "hidden_act", "gelu_new", {"config.json: hidden_act", "gelu_new"}},
      {"qwen3", "mlp_bias", true, {"mlp_bias"}},
      {"llama", "head_dim", 5, {"head_dim", "even"}},
      {"llama", "num_hidden_layers", "2", {"num_hidden_layers", "/"}},  // names the folder
      {"ernie4_5", "hidden_act", "gelu", {"config.json: hidden_act", "gelu"}},
      {"ernie4_5", "sliding_window", 512, {"config.json: sliding_window", "512"}},
      {"mistral", "num_key_value_heads", json(json::value_t::discarded), {"num_key_value_heads"}},
      {"qwen2", "mlp_bias", true, {"mlp_bias"}},
      {"qwen2",
       "layer_types",
       {"full_attention", "linear_attention"},
       {"layer_types", "linear_attention"}},
      {"qwen3", "attention_bias", true, {"bias", "missing"}},
      {"qwen3", "head_dim", nullptr, {"attn_q.weight"}},  // null is transformers' 128
      {"ernie4_5", "rope_theta", json(json::value_t::discarded), {"rope_theta"}},
      {"ernie4_5", "attention_bias", true, {"attention_bias"}},
      {"ernie4_5", "use_bias", true, {"bias", "missing"}},
  };
  return all;
}

TinyShape shape_of(std::string_view architecture) {
  TinyShape shape;
  if (architecture == "qwen2") shape.biases = true;
  if (architecture == "qwen3") shape.qk_norm = true;
  if (architecture != "mistral") shape.architecture = architecture;
  return shape;
}

json base_config(std::string_view architecture) {
  json config = config_of(shape_of(architecture));
  if (architecture == "mistral") {
    config["architectures"] = {"MistralForCausalLM"};
    config["model_type"] = "mistral";
    config["sliding_window"] = nullptr;
    config.erase("attention_bias");
    config.erase("mlp_bias");
  }
  return config;
}

TEST(HuggingFace, EveryFlippedKeyIsRefusedByName) {
  for (const Flip& flip : refused()) {
    SCOPED_TRACE(fmt::format("{}: {} = {}", flip.architecture, flip.key, flip.value.dump()));
    const TinyShape shape = shape_of(flip.architecture);
    json config = base_config(flip.architecture);
    const HuggingFaceFolder folder(shape, config);
    EXPECT_NO_THROW(logits_of(folder.path(), shape));
    if (flip.value.is_discarded()) {
      config.erase(flip.key);
    } else {
      config[flip.key] = flip.value;
    }
    folder.files().write("config.json", config.dump());
    expect_error<Error>([&] { logits_of(folder.path(), shape); }, flip.words);
  }
}

TEST(HuggingFace, KeysThatChangeNothingAreTaken) {
  struct Change {
    const char* architecture;
    const char* key;
    json value;
  };
  const std::vector<Change> changes = {
      {"llama", "head_dim", nullptr},
      {"llama", "num_key_value_heads", 2},
      {"llama", "hidden_act", "swish"},
      {"llama", "sliding_window", 1024},
      {"llama", "layer_types", {"full_attention", "full_attention"}},
      {"llama", "rope_scaling", {{"rope_type", "default"}}},
      {"llama", "rope_parameters", {{"rope_type", "default"}, {"rope_theta", 10000.0}}},
      {"llama", "rope_interleaved", false},
      {"llama", "_flash_attn_2_enabled", true},
      {"llama", "partial_rotary_factor", 1.0},
      {"llama", "pretraining_tp", 1},
      {"llama", "attention_dropout", 0.1},
      {"llama", "torch_dtype", "bfloat16"},
      {"llama", "eos_token_id", {1, 2}},
      {"llama", "auto_map", {{"AutoModel", "x.Y"}}},
      {"llama", "transformers.js_config", {{"kv_cache_dtype", {{"q4f16", "float16"}}}}},
      {"llama", "id2label", {{"0", "A"}}},
      {"llama", "quantization_config", nullptr},
      {"mistral", "sliding_window", 1024},
      {"mistral", "head_dim", nullptr},
      {"mistral", "num_key_value_heads", 2},
      {"qwen2", "use_sliding_window", false},
      {"qwen2", "use_mrope", false},  // the base models of Qwen 2.5
      {"qwen2", "sliding_window", 16},
      {"qwen2", "max_window_layers", 1},
      {"qwen2", "attention_bias", true},
      {"qwen3", "attention_bias", false},
      {"qwen3", "max_window_layers", 0},
      {"ernie4_5", "tie_word_embeddings", nullptr},  // transformers' defaults are true, 1e-5
      {"ernie4_5", "rms_norm_eps", nullptr},
      {"ernie4_5", "head_dim", nullptr},
  };
  for (const Change& change : changes) {
    SCOPED_TRACE(fmt::format("{}: {} = {}", change.architecture, change.key, change.value.dump()));
    const TinyShape shape = shape_of(change.architecture);
    json config = base_config(change.architecture);
    const HuggingFaceFolder folder(shape, config);
    const auto expected = logits_of(folder.path(), shape);
    config[change.key] = change.value;
    folder.files().write("config.json", config.dump());
    EXPECT_EQ(logits_of(folder.path(), shape), expected);
  }
}

// Windows of Qwen count from a layer on, and only when they are switched on.
TEST(HuggingFace, WindowsOfQwen) {
  const TinyShape shape = shape_of("qwen2");
  json config = config_of(shape);
  config["use_sliding_window"] = true;
  config["sliding_window"] = 16;
  config["max_window_layers"] = 2;  // as many as there are: none slides
  EXPECT_NO_THROW(open(HuggingFaceFolder(shape, config)));
  config["max_window_layers"] = 1;
  EXPECT_THROW(open(HuggingFaceFolder(shape, config)), UnsupportedError);
  config["layer_types"] = {"full_attention", "full_attention"};  // goes before the number
  EXPECT_NO_THROW(open(HuggingFaceFolder(shape, config)));
  config["layer_types"] = {"full_attention", "sliding_attention"};
  EXPECT_THROW(open(HuggingFaceFolder(shape, config)), UnsupportedError);
  config["sliding_window"] = shape.n_ctx;
  EXPECT_NO_THROW(open(HuggingFaceFolder(shape, config)));
}

// Without the key, transformers gives Mistral a window of 4096.
TEST(HuggingFace, AWindowOfMistralThatIsNotWrittenDown) {
  json config = base_config("mistral");
  config.erase("sliding_window");
  EXPECT_NO_THROW(open(HuggingFaceFolder({}, config)));
  config["max_position_embeddings"] = 8192;
  EXPECT_THROW(open(HuggingFaceFolder({}, config)), UnsupportedError);
  config["sliding_window"] = nullptr;
  EXPECT_NO_THROW(open(HuggingFaceFolder({}, config)));
}

TEST(HuggingFace, TiedWeightsLeaveAnEqualOutputMatrixAside) {
  const TinyShape shape;
  HuggingFaceFolder folder(shape);
  const auto expected = logits_of(folder.path(), shape);
  const auto checkpoint = testing::tiny_checkpoint(shape);
  Tensor copy(DType::kF32, {shape.vocab_size, shape.d_model});
  std::memcpy(copy.data(), checkpoint->find("token_embd.weight")->data, copy.view().n_bytes());
  folder.write_with("lm_head.weight", copy);
  EXPECT_EQ(open(folder).unused_tensors,
            std::vector<std::string>{"lm_head.weight (the embeddings are tied)"});
  EXPECT_EQ(logits_of(folder.path(), shape), expected);
}

// As transformers 5 does; formerly it ignored the matrix.
TEST(HuggingFace, AnOutputMatrixThatContradictsTheConfigurationIsUsed) {
  TinyShape shape;
  shape.tied = false;
  json config = config_of(shape);
  const auto expected = logits_of(HuggingFaceFolder(shape, config).path(), shape);
  config["tie_word_embeddings"] = true;
  const HuggingFaceFolder folder(shape, config);
  EXPECT_TRUE(open(folder).unused_tensors.empty());
  EXPECT_EQ(logits_of(folder.path(), shape), expected);
}

TEST(HuggingFace, TablesOfAnglesAreLeftAndOtherTensorsRefused) {
  HuggingFaceFolder folder;
  folder.write_with("model.layers.1.self_attn.rotary_emb.inv_freq", Tensor(DType::kF32, {8}));
  EXPECT_EQ(open(folder).unused_tensors.size(), 1u);
  folder.write_with("model.layers.1.self_attn.sinks", Tensor(DType::kF32, {4}));
  EXPECT_THROW(open(folder), UnsupportedError);
  folder.write_with("model.layers.1.self_attn.q_proj.bias", Tensor(DType::kF32, {64}));
  EXPECT_THROW(open(folder), FormatError);
  folder.write_without("model.layers.1.mlp.up_proj.weight");
  EXPECT_THROW(logits_of(folder.path(), {}), FormatError);
}

TEST(HuggingFace, WeightsOfOtherTypesAreRefused) {
  HuggingFaceFolder folder;
  folder.write_without("model.norm.weight");
  folder.write_with("model.layers.0.input_layernorm.weight2", Tensor(DType::kF64, {64}));
  EXPECT_THROW(open(folder), UnsupportedError);
}

TEST(HuggingFace, GenerationConfigBecomesDefaults) {
  HuggingFaceFolder folder;
  folder.add("generation_config.json",
             R"({"do_sample": true, "temperature": 0.6, "top_p": 0.9, "top_k": 20,
                 "repetition_penalty": 1.1, "eos_token_id": [2, 5], "bos_token_id": 1,
                 "transformers_version": "4.43.0"})");
  Metadata metadata = open(folder).metadata;
  EXPECT_EQ(metadata.number("general.sampling.temp"), 0.6F);
  EXPECT_EQ(metadata.number("general.sampling.top_p"), 0.9F);
  EXPECT_EQ(metadata.integer("general.sampling.top_k"), 20);
  EXPECT_EQ(metadata.number("general.sampling.penalty_repeat"), 1.1F);
  EXPECT_EQ(*metadata.integers(kStopTokenIdsKey), (std::vector<int64_t>{2, 5}));

  folder.add("generation_config.json", R"({"do_sample": false, "temperature": 0.6,
                                           "eos_token_id": 7})");
  metadata = open(folder).metadata;
  EXPECT_EQ(metadata.number("general.sampling.temp"), 0.0);
  EXPECT_EQ(*metadata.integers(kStopTokenIdsKey), std::vector<int64_t>{7});

  folder.add("generation_config.json", "{}");
  json config = config_of({});
  config["eos_token_id"] = {3, 4};
  folder.set_config(config);
  metadata = open(folder).metadata;
  EXPECT_FALSE(metadata.contains("general.sampling.temp"));
  EXPECT_EQ(*metadata.integers(kStopTokenIdsKey), (std::vector<int64_t>{3, 4}));

  config["eos_token_id"] = json::array();
  folder.set_config(config);
  EXPECT_FALSE(open(folder).metadata.contains(kStopTokenIdsKey));

  folder.add("generation_config.json", R"({"top_k": 40.0})");
  EXPECT_EQ(open(folder).metadata.integer("general.sampling.top_k"), 40);
  for (const char* text :
       {R"({"temperature": "hot"})", R"({"temperature": -1})", R"({"top_k": 2.5})",
        R"({"eos_token_id": "</s>"})", R"({"eos_token_id": [-7]})", R"({"do_sample": 1})"}) {
    folder.add("generation_config.json", text);
    expect_error<FormatError>([&] { open(folder); }, {folder.path() + "/generation_config.json"});
  }
}

TEST(HuggingFace, ChatTemplatesComeFromWhereTheyAre) {
  HuggingFaceFolder folder;
  EXPECT_FALSE(open(folder).metadata.contains("tokenizer.chat_template"));
  folder.add("tokenizer_config.json", R"({"chat_template": "one", "bos_token": "<s>"})");
  EXPECT_EQ(open(folder).metadata.string("tokenizer.chat_template"), "one");
  folder.add("tokenizer_config.json",
             R"({"chat_template": [{"name": "default", "template": "two"},
                                   {"name": "tool_use", "template": "tools"}]})");
  EXPECT_EQ(open(folder).metadata.string("tokenizer.chat_template"), "two");
  EXPECT_EQ(open(folder).metadata.string("tokenizer.chat_template.tool_use"), "tools");
  folder.add("chat_template.json", R"({"chat_template": "three"})");
  EXPECT_EQ(open(folder).metadata.string("tokenizer.chat_template"), "three");
  folder.add("chat_template.jinja", "four\n");
  EXPECT_EQ(open(folder).metadata.string("tokenizer.chat_template"), "four\n");
  EXPECT_EQ(open(folder).metadata.string("tokenizer.chat_template.tool_use"), "tools");
  std::filesystem::create_directory(folder.files().path("additional_chat_templates"));
  folder.add("additional_chat_templates/rag.jinja", "five");
  folder.add("additional_chat_templates/readme.txt", "not one");
  EXPECT_EQ(open(folder).metadata.string("tokenizer.chat_template.rag"), "five");
  EXPECT_TRUE(open(folder).attachments.contains("additional_chat_templates/rag.jinja"));
  folder.add("chat_template.jinja", "\xff");
  EXPECT_THROW(open(folder), FormatError);
}

}  // namespace
}  // namespace limpid
