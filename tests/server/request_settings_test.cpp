#include "server/request_settings.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <tuple>

namespace limpid::testing {
namespace {

RequestSettings read(const std::string& body, ApiName api = kChatApi) {
  const Json json = parse_body(body);
  RequestSettings settings;
  read_settings(JsonField(json, ""), api, nullptr, settings);
  return settings;
}

std::string blamed(const std::string& body, ApiName api = kChatApi) {
  try {
    read(body, api);
  } catch (const ApiError& error) {
    EXPECT_EQ(error.status(), 400);
    return error.param();
  }
  return "no error";
}

TEST(RequestSettings, EachApiHasItsNames) {
  EXPECT_EQ(read(R"({"max_completion_tokens": 7})").generation.n_predict, 7);
  EXPECT_EQ(read(R"({"n_predict": -1})", kLlamaApi).generation.n_predict, -1);
  EXPECT_EQ(read(R"({"num_predict": 7})", kOllamaOptionsApi).generation.n_predict, 7);
  EXPECT_EQ(read(R"({"max_output_tokens": 7})", kResponsesApi).generation.n_predict, 7);
  EXPECT_EQ(blamed(R"({"num_predict": 7})"), "num_predict");
  EXPECT_EQ(blamed(R"({"max_completion_tokens": 7})", kMessagesApi), "max_completion_tokens");
  EXPECT_EQ(read(R"({"stop_sequences": ["a", ""]})", kMessagesApi).generation.stop,
            std::vector<std::string>{"a"});
  EXPECT_EQ(read(R"({"stop": "a"})").generation.stop, std::vector<std::string>{"a"});
}

TEST(RequestSettings, ReadsSamplers) {
  const SamplerOptions sampler =
      read(R"({"temperature": 0.5, "top_k": 5.0, "seed": 123456789012, "min_p": null,
               "samplers": ["top_k", "typical_p", "temperature"]})")
          .generation.sampler;
  EXPECT_EQ(sampler.temperature, 0.5F);
  EXPECT_EQ(sampler.top_k, 5);
  EXPECT_EQ(sampler.seed, 123456789012);
  EXPECT_EQ(sampler.min_p, SamplerOptions().min_p);
  EXPECT_EQ(sampler.order, "top_k;typ_p;temperature");
  EXPECT_EQ(read(R"({"samplers": "dkt"})").generation.sampler.order, "top_k;temperature");
  for (const char* wrong :
       {R"({"samplers": "q"})", R"({"samplers": ["no"]})", R"({"samplers": 1})"})
    EXPECT_EQ(blamed(wrong).substr(0, 8), "samplers") << wrong;
}

TEST(RequestSettings, ReadsBiasesInBothShapes) {
  const auto biases = [](const std::string& body) {
    return read(body, kLlamaApi).generation.sampler.logit_bias;
  };
  const auto object = biases(R"({"logit_bias": {"5": 1.5, "7": -100}})");
  ASSERT_EQ(object.size(), 2U);
  EXPECT_EQ(object[0].id, 5);
  EXPECT_EQ(object[0].bias, 1.5F);
  EXPECT_TRUE(std::isinf(object[1].bias));
  const auto pairs = biases(R"({"logit_bias": [[5, 1.5], [7, false]]})");
  ASSERT_EQ(pairs.size(), 2U);
  EXPECT_EQ(pairs[0].id, 5);
  EXPECT_TRUE(std::isinf(pairs[1].bias));
  for (const char* wrong :
       {R"({"logit_bias": {"5": "x"}})", R"({"logit_bias": [[5]]})", R"({"logit_bias": [5]})",
        R"({"logit_bias": {"99999999999": 1}})", R"({"logit_bias": [[-5, 1]]})",
        R"({"logit_bias": {"word": 1}})", R"({"logit_bias": [[99999999999, 1]]})",
        R"({"logit_bias": [["5", 1]]})"})
    EXPECT_EQ(blamed(wrong).substr(0, 10), "logit_bias") << wrong;
}

TEST(RequestSettings, ReadsHowManyTokensAShiftKeeps) {
  EXPECT_EQ(read(R"({"n_keep": 5})", kLlamaApi).generation.n_keep, 5);
  EXPECT_EQ(read(R"({"n_keep": -1})", kLlamaApi).generation.n_keep, -1);
  EXPECT_EQ(blamed(R"({"n_keep": 5})"), "n_keep");
}

TEST(RequestSettings, ReadsLogprobsOfEachApi) {
  EXPECT_EQ(read(R"({"logprobs": true, "top_logprobs": 3})").generation.n_logprobs, 3);
  EXPECT_EQ(read(R"({"logprobs": true})").generation.n_logprobs, 0);
  EXPECT_EQ(read(R"({"logprobs": false})").generation.n_logprobs, -1);
  EXPECT_EQ(read(R"({"logprobs": 4})", kCompletionsApi).generation.n_logprobs, 4);
  EXPECT_EQ(read(R"({"n_probs": 5})", kLlamaApi).generation.n_logprobs, 5);
  EXPECT_EQ(read(R"({"n_probs": 0})", kLlamaApi).generation.n_logprobs, -1);
  EXPECT_EQ(blamed(R"({"logprobs": true, "top_logprobs": 21})"), "top_logprobs");
  for (const ApiName api : {kChatApi, kResponsesApi, kOllamaChatApi, kGenerateApi})
    EXPECT_EQ(blamed(R"({"top_logprobs": 3})", api), "top_logprobs");
  for (const char* body :
       {R"({"n_probs": 3, "logprobs": false})", R"({"logprobs": false, "n_probs": 3})"})
    EXPECT_EQ(blamed(body), "n_probs") << body;
  EXPECT_EQ(blamed(R"({"logprobs": 5})"), "logprobs");
  const std::string included = R"("include": ["message.output_text.logprobs"])";
  EXPECT_EQ(read("{\"top_logprobs\": 3, " + included + "}", kResponsesApi).generation.n_logprobs,
            3);
  EXPECT_EQ(blamed(R"({"include": ["file_search_call.results"]})", kResponsesApi), "include[0]");
}

TEST(RequestSettings, RefusesWhatTheSamplerCannotDo) {
  EXPECT_EQ(blamed(R"({"repeat_penalty": 1e-5})"), "repeat_penalty");
  EXPECT_EQ(blamed(R"({"stop": ")" + std::string(20'000, 'x') + "\"}"), "stop");
  std::string biases = "[5, 1]";
  for (int i = 1; i < 16 << 10; ++i) biases += ", [5, 1]";
  EXPECT_EQ(blamed("{\"logit_bias\": [" + biases + "]}"), "no error");
  EXPECT_EQ(blamed("{\"logit_bias\": [" + biases + ", [5, 1]]}"), "logit_bias");
}

TEST(RequestSettings, RefusesTwoValuesOfOneNumber) {
  EXPECT_EQ(blamed(R"({"max_tokens": 3, "max_completion_tokens": 4})"), "max_tokens");
  EXPECT_EQ(blamed(R"({"n_predict": 4, "max_tokens": 3})", kLlamaApi), "n_predict");
  EXPECT_EQ(blamed(R"({"logprobs": true, "top_logprobs": 2, "n_probs": 3})"), "n_probs");
  EXPECT_EQ(blamed(R"({"logprobs": 2, "n_probs": 3})", kCompletionsApi), "n_probs");
  const std::string same = R"({"max_tokens": 3, "max_completion_tokens": 3.0, "n_predict": null})";
  EXPECT_EQ(read(same).generation.n_predict, 3);
  EXPECT_EQ(read(R"({"logprobs": true, "n_probs": 0})").generation.n_logprobs, 0);
}

TEST(RequestSettings, TheBestOfAllChoicesAreAllOfThem) {
  for (const char* body : {R"({"best_of": 3, "n": 3})", R"({"n": 3, "best_of": 3.0})",
                           R"({"best_of": 1})", R"({"best_of": null, "n": 2})"})
    EXPECT_EQ(blamed(body, kCompletionsApi), "no error") << body;
  for (const char* body : {R"({"best_of": 3})", R"({"best_of": 3, "n": 2})",
                           R"({"best_of": 1, "n": 2})", R"({"best_of": "1"})"})
    EXPECT_EQ(blamed(body, kCompletionsApi), "best_of") << body;
  EXPECT_EQ(blamed(R"({"best_of": 1})"), "best_of");  // a chat has no such field
}

TEST(RequestSettings, OptionsForLoadingChangeNoAnswer) {
  for (const char* name : {"logits_all", "vocab_only", "embedding_only", "f16_kv"})
    EXPECT_EQ(blamed(fmt::format(R"({{"{}": true}})", name), kOllamaOptionsApi), "no error");
  EXPECT_EQ(blamed(R"({"penalize_newline": true})", kOllamaOptionsApi), "no error");
  for (const char* body : {R"({"penalize_newline": false})", R"({"penalize_newline": 1})"})
    EXPECT_EQ(blamed(body, kOllamaOptionsApi), "penalize_newline");
}

TEST(RequestSettings, AFieldWithoutEffectHasItsType) {
  for (const char* body : {R"({"user": 5})", R"({"metadata": "x"})", R"({"store": "yes"})",
                           R"({"dry_base": "2"})", R"({"dry_sequence_breakers": 1})"})
    EXPECT_NE(blamed(body), "no error") << body;
  EXPECT_EQ(blamed(R"({"user": 5})"), "user");
  EXPECT_EQ(blamed(R"({"num_gpu": true})", kOllamaOptionsApi), "num_gpu");
  EXPECT_EQ(blamed(R"({"num_gpu": 1})", kOllamaOptionsApi), "no error");
  EXPECT_EQ(blamed(R"({"keep_alive": "soon"})", kOllamaChatApi), "keep_alive");
  EXPECT_EQ(blamed(R"({"keep_alive": "5m"})", kOllamaChatApi), "no error");
}

TEST(RequestSettings, RefusesWhatWouldChangeTheAnswer) {
  for (const char* field :
       {R"("tools": [{}])", R"("tool_choice": "required")",
        R"("tool_choice": {"type": "function"})", R"("response_format": {"type": "json_schema"})",
        R"("grammar": "root ::= x")", R"("mirostat": 1)", R"("dry_multiplier": 0.5)",
        R"("modalities": ["text", "audio"])", R"("n": 0)", R"("top_p": 1.5)",
        R"("temperature": 1e40)", R"("unknown": 1)", R"("stream": "yes")",
        R"("stream_options": {"other": 1})", R"("max_tokens": 1.5)",
        R"("reasoning_format": "deepseek")", R"("verbosity": "low")",
        R"("response_format": {"type": "text", "schema": {}})",
        R"("response_format": {"type": "json_object", "x": 1})"}) {
    EXPECT_NE(blamed("{" + std::string(field) + "}"), "no error") << field;
  }
}

TEST(RequestSettings, TakesNoOtherValueThanTheNeutralOne) {
  for (const auto& [name, neutral, other] :
       {std::tuple("function_call", "\"auto\"", R"({"name": "f"})"),
        std::tuple("reasoning_effort", "\"none\"", "\"low\""), std::tuple("tfs_z", "1.0", "0.5"),
        std::tuple("n_discard", "0", "8"), std::tuple("web_search_options", "null", "{}")}) {
    EXPECT_EQ(blamed(fmt::format(R"({{"{}": {}}})", name, neutral)), "no error") << name;
    EXPECT_EQ(blamed(fmt::format(R"({{"{}": {}}})", name, other)), name);
  }
}

TEST(RequestSettings, TakesNeutralValuesOfEachApi) {
  for (const auto& [api, body, other] :
       {std::tuple(kResponsesApi, R"({"reasoning": {"effort": "none"}})",
                   R"({"reasoning": {"effort": "low"}})"),
        std::tuple(kMessagesApi, R"({"context_management": {"edits": []}})",
                   R"({"context_management": {"edits": [{}]}})"),
        std::tuple(kLlamaApi, R"({"t_max_predict_ms": -1})", R"({"t_max_predict_ms": 5})"),
        std::tuple(kOllamaChatApi, R"({"truncate": true})", R"({"truncate": 1})"),
        std::tuple(kCompletionsApi, R"({"metadata": {}})", R"({"metadata": {"a": "b"}})"),
        std::tuple(kChatApi, R"({"stream_options": {"continuous_usage_stats": false}})",
                   R"({"stream_options": {"continuous_usage_stats": true}})")}) {
    EXPECT_EQ(blamed(body, api), "no error") << body;
    EXPECT_NE(blamed(other, api), "no error") << other;
  }
}

TEST(RequestSettings, SaysWhatAValueMayBe) {
  const auto message = [](const char* body, ApiName api) -> std::string {
    try {
      read(body, api);
    } catch (const ApiError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(message(R"({"format": 5})", kGenerateApi), "format must be a string or an object");
  EXPECT_EQ(message(R"({"tool_choice": 5})", kChatApi),
            "tool_choice must be a string or an object");
  EXPECT_EQ(message(R"({"logprobs": "x"})", kCompletionsApi),
            "logprobs must be a whole number, true or false");
  EXPECT_EQ(message(R"({"keep_alive": []})", kOllamaChatApi),
            "keep_alive must be a string or a number");
  EXPECT_EQ(message(R"({"reasoning_format": "x"})", kChatApi),
            R"(reasoning_format must be "none" or "auto", not 'x')");
}

TEST(RequestSettings, AcceptsEmptyValuesOfTheSame) {
  for (const char* field :
       {R"("tools": [])", R"("tools": null)", R"("tool_choice": "auto")",
        R"("tool_choice": "none")", R"("response_format": {"type": "text"})", R"("grammar": "")",
        R"("mirostat": 0)", R"("dry_multiplier": 0.0)", R"("modalities": ["text"])",
        R"("user": "x")", R"("verbosity": "medium")", R"("reasoning_format": "auto")",
        R"("audio": {"voice": null, "format": null})"}) {
    EXPECT_EQ(blamed("{" + std::string(field) + "}"), "no error") << field;
  }
}

}  // namespace
}  // namespace limpid::testing
