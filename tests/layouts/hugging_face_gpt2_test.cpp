// GPT2LMHeadModel: what each key of config.json does, and which are refused by name.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>

#include "executor/executors.h"
#include "expect_error.h"
#include "layouts/canonical.h"
#include "layouts/gpt2.h"
#include "limpid/error.hpp"
#include "model/decoder_from_checkpoint.h"
#include "model/run_model.h"
#include "model/tiny_checkpoint.h"

namespace limpid {
namespace {

using testing::metadata_value;
using testing::run_in_chunks;
using testing::some_tokens;

testing::TinyShape shape_of_tests() {
  testing::TinyShape shape = testing::tiny_gpt2_shape();
  shape.n_ctx = 32;
  return shape;
}

// The tiny GPT-2 as transformers would save it: Conv1D matrices are [in, out].
Checkpoint saved_by_transformers() {
  const auto canonical = testing::tiny_checkpoint(shape_of_tests());
  Checkpoint saved;
  saved.path = "folder";
  saved.format = "Hugging Face, safetensors";
  saved.naming = Naming::kHuggingFace;
  saved.row_order = RowOrder::kHalfSplit;
  for (const std::string& name : canonical->tensor_order) {
    const TensorView& view = *canonical->find(name);
    Tensor tensor(DType::kF32, view.shape);
    std::memcpy(tensor.data(), view.data, view.n_bytes());
    if (name.starts_with("blk.") && view.shape.rank() == 2) {
      tensor = Tensor(DType::kF32, Shape{view.shape[1], view.shape[0]});
      for (int64_t r = 0; r < view.shape[0]; ++r) {
        for (int64_t c = 0; c < view.shape[1]; ++c)
          tensor.f32()[c * view.shape[0] + r] = view.f32()[r * view.shape[1] + c];
      }
    }
    saved.owned.push_back(std::make_shared<Tensor>(std::move(tensor)));
    const std::string theirs = their_name(kGpt2Conv1dNames, name).value();
    saved.tensors[theirs] = saved.owned.back()->view();
    saved.tensor_order.push_back(theirs);
  }
  Metadata& m = saved.metadata;
  const auto size = [&](const char* key, int64_t value) {
    m.set(std::string("config.") + key, metadata_value(value));
  };
  m.set("config.architectures", {std::vector<std::string>{"GPT2LMHeadModel"}, "array of string"});
  m.set("config.model_type", metadata_value(std::string("gpt2")));
  size("n_layer", 2);
  size("n_head", 4);
  size("n_embd", 64);
  size("n_inner", 96);
  size("n_positions", 32);
  size("n_ctx", 32);
  size("vocab_size", 50);
  m.set("config.layer_norm_epsilon", metadata_value(1e-5));
  m.set("config.activation_function", metadata_value(std::string("gelu_new")));
  for (const char* dropout : {"attn_pdrop", "embd_pdrop", "resid_pdrop"})
    m.set(std::string("config.") + dropout, metadata_value(0.1));
  m.set("config.summary_type", metadata_value(std::string("cls_index")));
  m.set("config.summary_use_proj", metadata_value(true));
  size("n_special", 0);  // of gpt2-medium, as the next
  m.set("config.predict_special_tokens", metadata_value(true));
  m.set("config.output_past", metadata_value(true));
  size("_num_labels", 1);  // of distilgpt2
  m.set("config.task_specific_params.text-generation.max_length", metadata_value(int64_t{50}));
  return saved;
}

using Change = std::function<void(Checkpoint&)>;

std::vector<float> logits_of(Checkpoint checkpoint) {
  const auto canonical = std::make_shared<const Checkpoint>(to_canonical(std::move(checkpoint)));
  return run_in_chunks(*Model::load(canonical, make_reference_executor({.n_threads = 1})),
                       some_tokens(12, 50), 12);
}

std::vector<float> logits_with(const Change& change) {
  Checkpoint checkpoint = saved_by_transformers();
  change(checkpoint);
  return logits_of(std::move(checkpoint));
}

Change set(const char* key, const MetadataValue& value) {
  return [key, value](Checkpoint& checkpoint) {
    checkpoint.metadata.set(std::string("config.") + key, value);
  };
}

TEST(HuggingFaceGpt2, IsTheModelThatGgufHolds) {
  EXPECT_EQ(logits_of(saved_by_transformers()),
            logits_of(*testing::tiny_checkpoint(shape_of_tests())));
}

TEST(HuggingFaceGpt2, MatricesAreTransposedOnceAndOthersStayViews) {
  const Checkpoint saved = saved_by_transformers();
  const Checkpoint canonical = to_canonical(saved);
  EXPECT_EQ(canonical.derived.size(), 2U * 4);
  EXPECT_TRUE(canonical.derived.contains("blk.1.attn_qkv.weight"));
  EXPECT_EQ(canonical.find("token_embd.weight")->data, saved.find("wte.weight")->data);
}

// Each flip either changes what is computed, or changes nothing because it cannot.
TEST(HuggingFaceGpt2, HeedsEveryKey) {
  const auto plain = logits_with([](Checkpoint&) {});
  for (const auto& [key, value] :
       {std::pair{"activation_function", metadata_value(std::string("gelu"))},
        {"activation_function", metadata_value(std::string("relu"))},
        {"activation_function", metadata_value(std::string("silu"))},
        {"layer_norm_epsilon", metadata_value(0.1)},
        {"n_head", metadata_value(int64_t{8})},
        {"scale_attn_weights", metadata_value(false)},
        {"scale_attn_by_inverse_layer_idx", metadata_value(true)}}) {
    EXPECT_NE(logits_with(set(key, value)), plain) << key;
  }
  for (const auto& [key, value] :
       {std::pair{"activation_function", metadata_value(std::string("gelu_pytorch_tanh"))},
        {"activation_function", metadata_value(std::string("gelu_fast"))},
        {"reorder_and_upcast_attn", metadata_value(true)},
        {"scale_attn_weights", metadata_value(true)},
        {"scale_attn_by_inverse_layer_idx", metadata_value(false)},
        {"tie_word_embeddings", metadata_value(true)},
        {"attn_pdrop", metadata_value(0.5)},
        {"use_cache", metadata_value(false)},
        {"add_cross_attention", metadata_value(false)},
        {"bos_token_id", metadata_value(int64_t{7})}}) {
    EXPECT_EQ(logits_with(set(key, value)), plain) << key;
  }
}

TEST(HuggingFaceGpt2, TiesItsHeadUnlessToldOtherwise) {
  const auto with_head = [](const TensorView& head) {
    return [head](Checkpoint& checkpoint) {
      checkpoint.tensors["lm_head.weight"] = head;
      checkpoint.tensor_order.emplace_back("lm_head.weight");
    };
  };
  const std::vector<float> values(50 * 64, 0.25F);
  const Tensor other = Tensor::of(Shape{50, 64}, values);
  const auto plain = logits_with([](Checkpoint&) {});
  EXPECT_EQ(logits_with([&](Checkpoint& checkpoint) {
              with_head (*checkpoint.find("wte.weight"))(checkpoint);
            }),
            plain);
  // transformers ties by default, but not what has different values.
  const auto untied = logits_with(with_head(other.view()));
  EXPECT_NE(untied, plain);
  EXPECT_EQ(logits_with([&](Checkpoint& checkpoint) {
              with_head(other.view())(checkpoint);
              set("tie_word_embeddings", metadata_value(false))(checkpoint);
            }),
            untied);
  EXPECT_THROW(logits_with(set("tie_word_embeddings", metadata_value(false))), FormatError);
}

struct Flip {
  const char* key;
  MetadataValue value;
};

class HuggingFaceGpt2Refused : public ::testing::TestWithParam<Flip> {};

TEST_P(HuggingFaceGpt2Refused, IsNamed) {
  expect_error<Error>([] { logits_with(set(GetParam().key, GetParam().value)); }, {GetParam().key});
}

INSTANTIATE_TEST_SUITE_P(
    Keys, HuggingFaceGpt2Refused,
    ::testing::Values(Flip{"activation_function", metadata_value(std::string("quick_gelu"))},
                      Flip{"activation_function", metadata_value(std::string("tanh"))},
                      Flip{"add_cross_attention", metadata_value(true)},
                      Flip{"is_encoder_decoder", metadata_value(true)},
                      Flip{"layer_norm_epsilon", metadata_value(0.0)},
                      Flip{"n_layer", metadata_value(int64_t{0})},
                      Flip{"n_ctx", metadata_value(int64_t{64})},
                      Flip{"vocab_size", metadata_value(int64_t{51})},
                      Flip{"scale_attn_by_inverse_layer_idx", metadata_value(std::string("yes"))},
                      Flip{"reorder_and_upcast_attn", metadata_value(std::string("yes"))},
                      Flip{"hidden_act", metadata_value(std::string("relu"))},
                      Flip{"attention_bias", metadata_value(false)},
                      Flip{"sliding_window", metadata_value(int64_t{8})},
                      Flip{"rope_theta", metadata_value(10000.0)},
                      Flip{"num_key_value_heads", metadata_value(int64_t{2})},
                      Flip{"bias", metadata_value(false)},
                      Flip{"model_type", metadata_value(std::string("gpt_neo"))}));

TEST(HuggingFaceGpt2, NamesWhatIsMissing) {
  for (const char* key : {"n_layer", "n_head", "n_embd", "vocab_size"}) {
    Checkpoint checkpoint = saved_by_transformers();
    Metadata rest;
    for (const auto& [name, value] : checkpoint.metadata.all()) {
      if (name != std::string("config.") + key) rest.set(name, value);
    }
    checkpoint.metadata = rest;
    expect_error<FormatError>([&] { to_canonical(checkpoint); },
                              {fmt::format(": {}: is missing", key)});
  }
  const auto without = [](const char* name) {
    return [name](Checkpoint& checkpoint) {
      checkpoint.tensors.erase(name);
      std::erase(checkpoint.tensor_order, name);
    };
  };
  EXPECT_THROW(logits_with(without("ln_f.bias")), FormatError);
  EXPECT_THROW(logits_with(without("h.1.attn.c_attn.bias")), FormatError);
}

TEST(Configuration, GivenToABareStateDictionaryIsRead) {
  Checkpoint checkpoint = saved_by_transformers();
  const auto plain = logits_of(checkpoint);
  checkpoint.metadata = {};
  checkpoint.naming = Naming::kStateDict;
  add_configuration(checkpoint, R"({"n_head": 4, "activation_function": "gelu_new"})");
  EXPECT_EQ(logits_of(checkpoint), plain);
  Checkpoint canonical = *testing::tiny_checkpoint();
  EXPECT_THROW(add_configuration(canonical, R"({"n_head": 4})"), ArgumentError);
}

}  // namespace
}  // namespace limpid
