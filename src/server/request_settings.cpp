#include "server/request_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <limits>
#include <tuple>
#include <variant>

#include "server/sampling_fields.h"
#include "tokenizer/chat_template.h"

namespace limpid {
namespace {

constexpr double kAny = 1e30;
constexpr unsigned kOpenAi = kChatApi | kCompletionsApi;
constexpr unsigned kLocal = kOpenAi | kLlamaApi;  // take llama-server's samplers
constexpr unsigned kOpenAiChats = kChatApi | kResponsesApi;
constexpr unsigned kOllamaApi = kOllamaChatApi | kGenerateApi;
constexpr unsigned kBodies = kLocal | kMessagesApi | kResponsesApi | kOllamaApi;
constexpr unsigned kSampled = kLocal | kMessagesApi | kResponsesApi | kOllamaOptionsApi;
constexpr unsigned kFree = kLocal | kOllamaOptionsApi;

constexpr std::string_view kNone = R"("none")", kAuto = R"("auto")", kMedium = R"("medium")";
constexpr int64_t kMostChoices = 64;
constexpr int64_t kMostTopLogprobs = 20;

// The tables below name every field of every API. A field that no row has for an API is an error
// there. So a typing error never goes unnoticed, and nobody believes that a field has shaped an
// answer when it has not. Example: "top_k" is a field of Anthropic's API, and unknown in OpenAI's
// Responses.

// A field that is only stored: a number within bounds, or true or false.
struct PlainField {
  std::initializer_list<std::string_view> names;
  unsigned apis;
  std::variant<float SamplerOptions::*, int32_t SamplerOptions::*, int64_t SamplerOptions::*,
               bool SamplerOptions::*, int64_t GenerationOptions::*, bool GenerationOptions::*,
               int64_t RequestSettings::*, int32_t RequestSettings::*, bool RequestSettings::*>
      member;
  double least = -kAny;  // of integers: what the member holds
  double most = kAny;
};

const PlainField kPlain[] = {
    {{"temperature"}, kSampled, &SamplerOptions::temperature},
    {{"top_p"}, kSampled, &SamplerOptions::top_p, 0, 1},
    {{"top_k"}, kFree | kMessagesApi, &SamplerOptions::top_k},
    {{"min_p"}, kFree, &SamplerOptions::min_p, 0, 1},
    {{"typical_p"}, kFree, &SamplerOptions::typical_p, 0},
    {{"top_n_sigma"}, kLocal, &SamplerOptions::top_n_sigma},
    {{"xtc_probability"}, kLocal, &SamplerOptions::xtc_probability, 0, 1},
    {{"xtc_threshold"}, kLocal, &SamplerOptions::xtc_threshold, 0},
    {{"repeat_last_n"}, kFree, &SamplerOptions::repeat_last_n, -1},
    {{"repeat_penalty"}, kFree, &SamplerOptions::repeat_penalty, 1e-3, 1e3},
    {{"presence_penalty"}, kFree, &SamplerOptions::presence_penalty},
    {{"frequency_penalty"}, kFree, &SamplerOptions::frequency_penalty},
    {{"min_keep"}, kLocal, &SamplerOptions::min_keep, 0},
    {{"seed"}, kFree, &SamplerOptions::seed, -1},
    {{"ignore_eos"}, kLocal, &SamplerOptions::ignore_eos},
    {{"max_tokens"}, kMessagesApi, &GenerationOptions::n_predict, 0, kMostTokensOfField},
    {{"max_output_tokens"}, kResponsesApi, &GenerationOptions::n_predict, 0, kMostTokensOfField},
    {{"num_keep"}, kOllamaOptionsApi, &GenerationOptions::n_keep, -1, kMostTokensOfField},
    {{"n_keep"}, kLlamaApi, &GenerationOptions::n_keep, -1, kMostTokensOfField},
    {{"post_sampling_probs"}, kLlamaApi, &GenerationOptions::logprobs_after_sampling},
    {{"n"}, kOpenAi, &RequestSettings::n_choices, 1, kMostChoices},
    {{"id_slot"}, kLocal, &RequestSettings::slot, -1, INT32_MAX},
    {{"top_logprobs"},
     kOpenAiChats | kOllamaApi,
     &RequestSettings::n_top_logprobs,
     0,
     kMostTopLogprobs},
    {{"logprobs"}, kChatApi | kOllamaApi, &RequestSettings::wants_logprobs},
    {{"stream"}, kBodies, &RequestSettings::stream},
    {{"echo"}, kCompletionsApi, &RequestSettings::echo},
    {{"return_tokens"}, kLlamaApi, &RequestSettings::return_tokens},
    {{"verbose"}, kChatApi, &RequestSettings::verbose},
    {{"return_progress"}, kLocal | kResponsesApi, &RequestSettings::return_progress},
    {{"add_generation_prompt"}, kChatApi, &RequestSettings::add_generation_prompt},
    {{"continue_final_message"}, kChatApi, &RequestSettings::continues_last},
};

template <typename Part, typename T>
T& member_of(RequestSettings& settings, T Part::*member) {
  const auto parts = std::tie(settings, settings.generation, settings.generation.sampler);
  return std::get<Part&>(parts).*member;
}

void read_plain(const PlainField& row, const JsonField& field, RequestSettings& settings) {
  std::visit(
      [&](auto member) {
        auto& value = member_of(settings, member);
        using Value = std::remove_reference_t<decltype(value)>;
        if constexpr (std::is_same_v<Value, bool>) {
          value = field.boolean();
        } else if constexpr (std::is_floating_point_v<Value>) {
          value = static_cast<Value>(field.number(row.least, row.most));
        } else {
          const auto bound = [](double given, int64_t otherwise) {
            return given > -kAny && given < kAny ? static_cast<int64_t>(given) : otherwise;
          };
          using Limits = std::numeric_limits<Value>;
          value = static_cast<Value>(
              field.integer(bound(row.least, Limits::min()), bound(row.most, Limits::max())));
        }
      },
      row.member);
}

// llama-server's -1, which is also Ollama's default, and which LM Studio's clients send, leaves the
// limit that the server was started with.
void read_llama_n_predict(const JsonField& field, FieldTarget target) {
  if (field.json() != -1)
    target.settings.generation.n_predict = field.integer(-2, kMostTokensOfField);
}
void read_stream_options(const JsonField& field, FieldTarget target) {
  field.allow_only({"include_usage", "include_obfuscation", "continuous_usage_stats"});
  if (field.boolean("continuous_usage_stats", false))
    field.find("continuous_usage_stats")->fail("is not supported yet");
  target.settings.include_usage = field.boolean("include_usage", false);
}
// A number in a completion; true in a chat, where top_logprobs has the number.
void read_logprobs(const JsonField& field, FieldTarget target) {
  target.settings.wants_logprobs = field.json() != false;
  if (field.json().is_boolean()) return;
  target.settings.n_top_logprobs =
      static_cast<int32_t>(field.integer(0, kMostTopLogprobs, "a whole number, true or false"));
}
void read_n_probs(const JsonField& field, FieldTarget target) {
  const auto n = static_cast<int32_t>(field.integer(0, 100));
  if (n == 0) return;
  target.settings.n_top_logprobs = n;
  target.settings.wants_logprobs = true;
}
void read_include(const JsonField& field, FieldTarget target) {
  for (const JsonField& entry : field.elements()) {
    if (entry.string() != "message.output_text.logprobs")
      entry.must_be(R"("message.output_text.logprobs")");
    target.settings.wants_logprobs = true;
  }
}
void read_response_fields(const JsonField& field, FieldTarget target) {
  for (const JsonField& entry : field.elements())
    target.settings.response_fields.push_back(entry.string());
}
// An empty list means the same as no list, as in llama-server.
void read_lora(const JsonField& field, FieldTarget target) {
  std::vector<AdapterScale> scales = read_adapter_scales(field);
  if (!scales.empty()) target.settings.adapter_scales = std::move(scales);
}
void read_variables(const JsonField& field, FieldTarget target) {
  for (const JsonField& member : field.members()) {
    if (std::ranges::find(kFixedTemplateVariables, member.key()) != kFixedTemplateVariables.end())
      member.fail("cannot be set here");
  }
  target.settings.template_variables = field.json();
}
// Tail-free sampling, of which 1 keeps every token.
void read_tfs_z(const JsonField& field, FieldTarget) {
  if (field.number(-kAny, kAny) != 1) field.must_be("1");
}
// Ollama's. The penalties treat a newline as any other token.
void read_penalize_newline(const JsonField& field, FieldTarget) {
  if (!field.boolean()) field.must_be("true");
}
void read_modalities(const JsonField& field, FieldTarget) {
  for (const JsonField& entry : field.elements()) {
    if (entry.string() != "text") entry.must_be(R"("text")");
  }
}
// An empty object asks for a search too.
void refuse(const JsonField& field, FieldTarget) { field.fail("is not supported yet"); }
// {"type": "text"} and its relatives: a choice of which only the plain one is there.
void read_plain_type(const JsonField& field, FieldTarget) {
  const auto type = field.find("type");
  if (!type) field.fail("needs a type");
  const std::string& name = type->string();
  if (name != "text" && name != "disabled" && name != "none" && name != "auto")
    type->fail(fmt::format("'{}' is not supported yet", name));
}
// A request can only turn thoughts off. The template then gets enable_thinking = false, as from
// chat_template_kwargs.
void read_think(const JsonField& field, FieldTarget target) {
  if (!field.is_empty()) field.fail("is not supported yet");
  if (field.json() == false) target.settings.template_variables["enable_thinking"] = false;
}
void read_thinking(const JsonField& field, FieldTarget target) {
  read_plain_type(field, target);
  if (field.find("type")->string() == "disabled")
    target.settings.template_variables["enable_thinking"] = false;
}
// Takes only a value that asks for what happens anyway: an empty one, or one of `neutral`, as JSON.
void refuse_unless_neutral(const JsonField& field,
                           std::initializer_list<std::string_view> neutral) {
  if (field.is_empty()) return;
  if (std::ranges::count(neutral, dump_json(field.json())) > 0) return;
  if (neutral.size() == 0) field.fail("is not supported yet");
  field.must_be(fmt::format("{}", fmt::join(neutral, " or ")));
}
void read_text_format(const JsonField& field, FieldTarget target) {
  field.allow_only({"format", "verbosity"});
  if (const auto verbosity = field.find("verbosity")) refuse_unless_neutral(*verbosity, {kMedium});
  if (const auto format = field.find("format")) read_response_format(*format, target);
}
void read_choice_of_tool(const JsonField& field, FieldTarget target) {
  if (field.json().is_object()) return read_plain_type(field, target);
  const std::string& name = field.string("a string or an object");
  if (name != "none" && name != "auto") field.fail("is not supported yet");
}

// These have no effect on the answer, or the endpoint reads them; their type must be right.
void expect_string(const JsonField& field, FieldTarget) { field.string(); }
void expect_boolean(const JsonField& field, FieldTarget) { field.boolean(); }
void expect_number(const JsonField& field, FieldTarget) { field.number(-kAny, kAny); }
void expect_object(const JsonField& field, FieldTarget) { field.members(); }
void expect_array(const JsonField& field, FieldTarget) { field.elements(); }
void expect_duration(const JsonField& field, FieldTarget) { is_zero_duration(field); }
void leave_to_endpoint(const JsonField&, FieldTarget) {}

struct ReadFields {
  std::initializer_list<std::string_view> names;
  unsigned apis;
  void (*read)(const JsonField& field, FieldTarget target);
};

const ReadFields kRead[] = {
    {{"stream_options"}, kOpenAi | kResponsesApi, read_stream_options},
    {{"max_tokens", "n_predict"}, kLocal, read_llama_n_predict},
    {{"max_completion_tokens"}, kChatApi, read_llama_n_predict},
    {{"num_predict"}, kOllamaOptionsApi, read_llama_n_predict},
    {{"penalize_newline"}, kOllamaOptionsApi, read_penalize_newline},
    {{"tfs_z"}, kFree, read_tfs_z},
    {{"stop"}, kFree, read_stop},
    {{"stop_sequences"}, kMessagesApi, read_stop},
    {{"logit_bias"}, kLocal, read_logit_bias},
    {{"samplers"}, kLocal, read_samplers},
    {{"grammar"}, kLocal, read_grammar},
    {{"logprobs"}, kCompletionsApi, read_logprobs},
    {{"n_probs"}, kLocal, read_n_probs},
    {{"lora"}, kLocal, read_lora},
    {{"response_fields"}, kLlamaApi, read_response_fields},
    {{"chat_template_kwargs"}, kChatApi, read_variables},
    {{"modalities"}, kChatApi, read_modalities},
    {{"response_format"}, kLocal, read_response_format},
    {{"json_schema"}, kLocal, read_schema},
    {{"format"}, kOllamaApi, read_format},
    {{"thinking"}, kMessagesApi, read_thinking},
    {{"think"}, kOllamaApi, read_think},
    {{"include"}, kResponsesApi, read_include},
    {{"text"}, kResponsesApi, read_text_format},
    {{"tool_choice"}, kOpenAiChats | kMessagesApi, read_choice_of_tool},
    {{"web_search_options"}, kChatApi, refuse},
    // The content of a request, and what an endpoint adds to it.
    {{"messages"}, kChatApi | kMessagesApi | kOllamaChatApi, leave_to_endpoint},
    {{"prompt"}, kCompletionsApi | kLlamaApi | kGenerateApi, leave_to_endpoint},
    {{"system"}, kMessagesApi | kGenerateApi, leave_to_endpoint},
    {{"input", "instructions"}, kResponsesApi, leave_to_endpoint},
    {{"options"}, kOllamaApi, expect_object},
    {{"num_ctx"}, kOllamaOptionsApi, expect_number},
    {{"raw"}, kGenerateApi, expect_boolean},
    // A prompt that is too long is refused with both values, and without one.
    {{"truncate"}, kOllamaApi, expect_boolean},
    // What read_settings() compares with another field.
    {{"best_of"}, kCompletionsApi, leave_to_endpoint},
    // What has no effect on the text of the answer.
    {{"model"}, kBodies, expect_string},
    {{"user"}, kOpenAi | kResponsesApi, expect_string},
    {{"metadata"}, kOpenAiChats | kMessagesApi, expect_object},
    {{"service_tier"}, kOpenAiChats | kMessagesApi, expect_string},
    {{"store"}, kOpenAiChats, expect_boolean},
    {{"safety_identifier", "prompt_cache_key", "prompt_cache_retention"},
     kOpenAiChats,
     expect_string},
    {{"prompt_cache_options"}, kOpenAiChats, expect_object},
    {{"cache_control", "diagnostics"}, kMessagesApi, expect_object},
    {{"inference_geo", "speed", "user_profile_id", "workspace_id"}, kMessagesApi, expect_string},
    {{"keep_alive"}, kOllamaApi, expect_duration},
    {{"num_batch", "num_thread", "num_gpu", "main_gpu"}, kOllamaOptionsApi, expect_number},
    {{"use_mmap", "use_mlock", "numa", "low_vram", "f16_kv", "logits_all", "vocab_only",
      "embedding_only"},
     kOllamaOptionsApi,
     expect_boolean},
    {{"timings_per_token"}, kLocal | kResponsesApi, expect_boolean},
    {{"backend_sampling", "cache_prompt"}, kLocal, expect_boolean},
    {{"parallel_tool_calls"}, kOpenAiChats, expect_boolean},  // tools are refused
    // What matters only beside a field that is refused: dry_multiplier, mirostat, dynatemp_range.
    {{"dry_base", "dry_allowed_length", "dry_penalty_last_n"}, kLocal, expect_number},
    {{"dry_sequence_breakers"}, kLocal, expect_array},
    {{"mirostat_tau", "mirostat_eta"}, kFree, expect_number},
    {{"dynatemp_exponent"}, kLocal, expect_number},
};

// What would change the answer, and is not supported.
struct RefusedFields {
  std::initializer_list<std::string_view> names;
  unsigned apis;
  std::initializer_list<std::string_view> neutral = {};
};

const RefusedFields kRefused[] = {
    {{"tools"}, kOpenAiChats | kMessagesApi | kOllamaApi},
    {{"functions", "audio", "prediction"}, kChatApi},
    {{"reasoning_effort"}, kChatApi, {kNone}},
    {{"reasoning"}, kResponsesApi, {R"({"effort":"none"})"}},
    {{"function_call", "reasoning_format"}, kChatApi, {kNone, kAuto}},  // thoughts are in the text
    {{"verbosity"}, kChatApi, {kMedium}},
    {{"metadata"}, kCompletionsApi},
    {{"moderation"}, kOpenAiChats},
    {{"truncation"}, kResponsesApi, {R"("disabled")"}},
    {{"previous_response_id", "conversation", "prompt", "background", "max_tool_calls",
      "context_management"},
     kResponsesApi},
    {{"context_management"}, kMessagesApi, {R"({"edits":[]})"}},
    {{"container", "mcp_servers", "output_config", "output_format"}, kMessagesApi},
    {{"suffix"}, kCompletionsApi | kOllamaApi},
    {{"template", "context", "images"}, kOllamaApi},
    {{"prompt", "system", "raw"}, kOllamaChatApi},
    {{"messages"}, kGenerateApi},
    {{"post_sampling_probs"}, kOpenAi},
    {{"grammar_lazy", "dry_multiplier", "dynatemp_range", "n_discard"}, kLocal},
    {{"t_max_predict_ms"}, kLocal, {"-1"}},
    {{"mirostat"}, kFree},
    {{"n_indent", "image_data"}, kLlamaApi},
};

void read_field(const JsonField& field, unsigned api, FieldTarget target) {
  const auto is_it = [&](const auto& row) {
    return (row.apis & api) != 0 && std::ranges::count(row.names, field.key()) > 0;
  };
  const auto* const plain = std::ranges::find_if(kPlain, is_it);
  const auto* const read = std::ranges::find_if(kRead, is_it);
  const auto* const refused = std::ranges::find_if(kRefused, is_it);
  if (plain != std::end(kPlain)) {
    read_plain(*plain, field, target.settings);
  } else if (read != std::end(kRead)) {
    read->read(field, target);
  } else if (refused != std::end(kRefused)) {
    refuse_unless_neutral(field, refused->neutral);
  } else {
    field.fail("is not a known field");
  }
}

// Two names of one number must agree, because neither has precedence.
void refuse_two_values(const JsonField& object, std::initializer_list<const char*> names) {
  std::optional<JsonField> first;
  for (const char* name : names) {
    const auto field = object.find(name);
    if (!field) continue;
    if (first && first->json() != field->json())
      field->fail(fmt::format("is {}, and {} is {}: give one of them", field->json().dump(),
                              first->name(), first->json().dump()));
    first = field;
  }
}

// The server makes as many choices as it gives, and so keeps the best of them all.
void check_best_of(const JsonField& best_of, int64_t n_choices) {
  if (!best_of.is_empty() && best_of.integer(0, kMostChoices) != n_choices)
    best_of.fail(fmt::format("is {}, and n is {}: only the same number is supported",
                             best_of.json().dump(), n_choices));
}

}  // namespace

// A name may be in several tables, for different APIs.
void read_settings(const JsonField& object, ApiName api, const Tokenizer* tokenizer,
                   RequestSettings& settings) {
  for (const JsonField& field : object.members()) {
    if (!field.json().is_null()) read_field(field, api, {settings, tokenizer});
  }
  if ((api & kLocal) != 0)
    refuse_two_values(object, {"max_completion_tokens", "max_tokens", "n_predict"});
  if (api == kChatApi) refuse_two_values(object, {"top_logprobs", "n_probs"});
  if (api == kCompletionsApi) refuse_two_values(object, {"logprobs", "n_probs"});
  if (const auto best_of = object.find("best_of")) check_best_of(*best_of, settings.n_choices);
  const auto logprobs = object.find("logprobs");
  const bool wants_none = logprobs && logprobs->json() == false;
  if (settings.n_top_logprobs > 0 && (wants_none || !settings.wants_logprobs)) {
    const std::string name = object.find("n_probs") ? "n_probs" : "top_logprobs";
    throw ApiError(
        400,
        name + (api == kResponsesApi ? " needs include: [\"message.output_text.logprobs\"]"
                                     : " needs logprobs to be true"),
        name);
  }
  settings.generation.n_logprobs = settings.wants_logprobs ? settings.n_top_logprobs : -1;
}

}  // namespace limpid
