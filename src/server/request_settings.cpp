#include "server/request_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <limits>
#include <span>
#include <variant>

#include "server/sampling_fields.h"
#include "tokenizer/chat_template.h"

namespace limpid {
namespace {

constexpr double kAny = 1e30;
constexpr unsigned kOpenAi = kChatApi | kCompletionsApi;
constexpr unsigned kLocal = kOpenAi | kLlamaApi;  // take llama-server's samplers
constexpr unsigned kOllamaApi = kOllamaChatApi | kGenerateApi;
constexpr unsigned kBodies = kLocal | kMessagesApi | kResponsesApi | kOllamaApi;
constexpr unsigned kSampled = kLocal | kMessagesApi | kResponsesApi | kOllamaOptionsApi;
constexpr unsigned kFree = kLocal | kOllamaOptionsApi;

constexpr int64_t kMostChoices = 64;
constexpr int64_t kMostTopLogprobs = 20;

// The tables below name every field of every API. A field that no row has for an API is an error
// there. So a typing error never goes unnoticed, and nobody believes that a field has shaped an
// answer when it has not. Example: "top_k" is a field of Anthropic's API, and unknown in OpenAI's
// Responses.

// A number of SamplerOptions.
struct NumberField {
  std::string_view name;
  unsigned apis;
  std::variant<float SamplerOptions::*, int32_t SamplerOptions::*, int64_t SamplerOptions::*>
      member;
  double least = -kAny;
  double most = kAny;  // of integers: what the member holds
};

constexpr NumberField kNumbers[] = {
    {"temperature", kSampled, &SamplerOptions::temperature},
    {"top_p", kSampled, &SamplerOptions::top_p, 0, 1},
    {"top_k", kFree | kMessagesApi, &SamplerOptions::top_k},
    {"min_p", kFree, &SamplerOptions::min_p, 0, 1},
    {"typical_p", kFree, &SamplerOptions::typical_p, 0},
    {"top_n_sigma", kLocal, &SamplerOptions::top_n_sigma},
    {"xtc_probability", kLocal, &SamplerOptions::xtc_probability, 0, 1},
    {"xtc_threshold", kLocal, &SamplerOptions::xtc_threshold, 0},
    {"repeat_last_n", kFree, &SamplerOptions::repeat_last_n, -1},
    {"repeat_penalty", kFree, &SamplerOptions::repeat_penalty, 1e-3, 1e3},
    {"presence_penalty", kFree, &SamplerOptions::presence_penalty},
    {"frequency_penalty", kFree, &SamplerOptions::frequency_penalty},
    {"min_keep", kLocal, &SamplerOptions::min_keep, 0},
    {"seed", kFree, &SamplerOptions::seed, -1},
};

void read_sampler(const NumberField& number, const JsonField& field, SamplerOptions& sampler) {
  std::visit(
      [&](auto member) {
        auto& value = sampler.*member;
        using Number = std::remove_reference_t<decltype(value)>;
        if constexpr (std::is_floating_point_v<Number>) {
          value = static_cast<Number>(field.number(number.least, number.most));
        } else {
          using Limits = std::numeric_limits<Number>;
          const double least = std::max(number.least, static_cast<double>(Limits::min()));
          value = static_cast<Number>(
              field.integer(least < -9e18 ? Limits::min() : static_cast<int64_t>(least),
                            static_cast<int64_t>(Limits::max())));
        }
      },
      number.member);
}

// Ollama also takes -1 (no limit) and -2 (until the context is full).
template <int64_t kLeast>
void read_n_predict(const JsonField& field, FieldTarget target) {
  target.settings.generation.n_predict = field.integer(kLeast, kMostTokensOfField);
}
// llama-server's -1, which LM Studio's clients send too, leaves the limit that the server was
// started with.
void read_llama_n_predict(const JsonField& field, FieldTarget target) {
  if (field.json() != -1) read_n_predict<-2>(field, target);
}
template <bool RequestSettings::*kFlag>
void read_flag(const JsonField& field, FieldTarget target) {
  target.settings.*kFlag = field.boolean();
}
void read_ignore_eos(const JsonField& field, FieldTarget target) {
  target.settings.generation.sampler.ignore_eos = field.boolean();
}
void read_stream_options(const JsonField& field, FieldTarget target) {
  field.allow_only({"include_usage", "include_obfuscation"});
  target.settings.include_usage = field.boolean("include_usage", false);
}
// A number in a completion; true in a chat, where top_logprobs has the number.
void read_logprobs(const JsonField& field, FieldTarget target) {
  if (field.json().is_boolean()) return read_flag<&RequestSettings::wants_logprobs>(field, target);
  target.settings.wants_logprobs = true;
  target.settings.n_top_logprobs = static_cast<int32_t>(field.integer(0, kMostTopLogprobs));
}
void read_top_logprobs(const JsonField& field, FieldTarget target) {
  target.settings.n_top_logprobs = static_cast<int32_t>(field.integer(0, kMostTopLogprobs));
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
      entry.fail("is '" + entry.string() + "', can only be message.output_text.logprobs");
    target.settings.wants_logprobs = true;
  }
}
void read_n(const JsonField& field, FieldTarget target) {
  target.settings.n_choices = field.integer(1, kMostChoices);
}
void read_n_keep(const JsonField& field, FieldTarget target) {
  target.settings.generation.n_keep = field.integer(-1, kMostTokensOfField);
}
void read_slot(const JsonField& field, FieldTarget target) {
  target.settings.slot = field.integer(-1, INT32_MAX);
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
void read_after_sampling(const JsonField& field, FieldTarget target) {
  target.settings.generation.logprobs_after_sampling = field.boolean();
}
void read_variables(const JsonField& field, FieldTarget target) {
  for (const JsonField& member : field.members()) {
    if (std::ranges::find(kFixedTemplateVariables, member.key()) != kFixedTemplateVariables.end())
      member.fail("cannot be set here");
  }
  target.settings.template_variables = field.json();
}
// Ollama's. The penalties treat a newline as any other token.
void read_penalize_newline(const JsonField& field, FieldTarget) {
  if (!field.boolean()) field.fail("can only be true");
}
void read_text_only(const JsonField& field, FieldTarget) {
  for (const JsonField& entry : field.elements()) {
    if (entry.string() != "text") entry.fail("can only be \"text\"");
  }
}
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
void read_verbosity(const JsonField& field, FieldTarget) {
  if (!field.is_empty() && field.string() != "medium") field.fail("can only be \"medium\"");
}
void read_text_format(const JsonField& field, FieldTarget target) {
  field.allow_only({"format", "verbosity"});
  if (const auto verbosity = field.find("verbosity")) read_verbosity(*verbosity, target);
  if (const auto format = field.find("format")) read_response_format(*format, target);
}
// What becomes of a model's thoughts: they are a part of the text.
void read_reasoning_format(const JsonField& field, FieldTarget) {
  if (!field.is_empty() && field.string() != "none" && field.string() != "auto")
    field.fail("can only be \"none\" or \"auto\"");
}
void read_truncation(const JsonField& field, FieldTarget) {
  if (field.string() != "disabled") field.fail("can only be \"disabled\"");
}
void read_choice_of_tool(const JsonField& field, FieldTarget target) {
  if (field.json().is_object()) return read_plain_type(field, target);
  if (field.string() != "none" && field.string() != "auto") field.fail("is not supported yet");
}

struct OtherField {
  std::string_view name;
  unsigned apis;
  void (*read)(const JsonField& field, FieldTarget target);
};

constexpr OtherField kOthers[] = {
    {"stream", kBodies, read_flag<&RequestSettings::stream>},
    {"stream_options", kOpenAi | kResponsesApi, read_stream_options},
    {"n", kOpenAi, read_n},
    {"max_tokens", kLocal, read_llama_n_predict},
    {"max_tokens", kMessagesApi, read_n_predict<0>},
    {"max_completion_tokens", kChatApi, read_llama_n_predict},
    {"max_output_tokens", kResponsesApi, read_n_predict<0>},
    {"n_predict", kLocal, read_llama_n_predict},
    {"num_predict", kOllamaOptionsApi, read_n_predict<-2>},
    {"num_keep", kOllamaOptionsApi, read_n_keep},
    {"n_keep", kLlamaApi, read_n_keep},
    {"penalize_newline", kOllamaOptionsApi, read_penalize_newline},
    {"stop", kFree, read_stop},
    {"stop_sequences", kMessagesApi, read_stop},
    {"logit_bias", kLocal, read_logit_bias},
    {"ignore_eos", kLocal, read_ignore_eos},
    {"samplers", kLocal, read_samplers},
    {"grammar", kLocal, read_grammar},
    {"logprobs", kCompletionsApi, read_logprobs},
    {"logprobs", kChatApi | kOllamaApi, read_flag<&RequestSettings::wants_logprobs>},
    {"top_logprobs", kChatApi | kResponsesApi | kOllamaApi, read_top_logprobs},
    {"n_probs", kLocal, read_n_probs},
    {"echo", kCompletionsApi, read_flag<&RequestSettings::echo>},
    {"lora", kLocal, read_lora},
    {"id_slot", kLocal, read_slot},
    {"return_tokens", kLlamaApi, read_flag<&RequestSettings::return_tokens>},
    {"response_fields", kLlamaApi, read_response_fields},
    {"verbose", kChatApi, read_flag<&RequestSettings::verbose>},
    {"return_progress", kLocal | kResponsesApi, read_flag<&RequestSettings::return_progress>},
    {"post_sampling_probs", kLlamaApi, read_after_sampling},
    {"chat_template_kwargs", kChatApi, read_variables},
    {"add_generation_prompt", kChatApi, read_flag<&RequestSettings::add_generation_prompt>},
    {"continue_final_message", kChatApi, read_flag<&RequestSettings::continues_last>},
    {"modalities", kChatApi, read_text_only},
    {"response_format", kLocal, read_response_format},
    {"json_schema", kLocal, read_schema},
    {"format", kOllamaApi, read_format},
    {"thinking", kMessagesApi, read_thinking},
    {"think", kOllamaApi, read_think},
    {"include", kResponsesApi, read_include},
    {"verbosity", kChatApi, read_verbosity},
    {"reasoning_format", kChatApi, read_reasoning_format},
    {"text", kResponsesApi, read_text_format},
    {"truncation", kResponsesApi, read_truncation},
    {"tool_choice", kChatApi | kMessagesApi | kResponsesApi, read_choice_of_tool},
};

struct NamedFields {
  unsigned apis;
  std::initializer_list<std::string_view> names;
};

// These need no reader.
const NamedFields kPassedOver[] = {
    // The content of a request, which the endpoint reads.
    {kChatApi | kMessagesApi | kOllamaChatApi, {"messages"}},
    {kCompletionsApi | kLlamaApi | kGenerateApi, {"prompt"}},
    {kMessagesApi | kGenerateApi, {"system"}},
    {kResponsesApi, {"input", "instructions"}},
    {kOllamaApi, {"options"}},
    {kOllamaOptionsApi, {"num_ctx"}},
    {kGenerateApi, {"raw"}},
    // What read_settings() compares with another field.
    {kCompletionsApi, {"best_of"}},
    // What has no effect on the text of the answer.
    {kBodies, {"model"}},
    {kOpenAi | kResponsesApi, {"user"}},
    {kChatApi | kMessagesApi | kResponsesApi, {"metadata", "service_tier"}},
    {kChatApi | kResponsesApi,
     {"store", "safety_identifier", "prompt_cache_key", "prompt_cache_retention",
      "prompt_cache_options"}},
    {kMessagesApi,
     {"cache_control", "inference_geo", "speed", "diagnostics", "user_profile_id", "workspace_id"}},
    {kOllamaApi, {"keep_alive"}},
    {kOllamaOptionsApi,
     {"num_batch", "num_thread", "num_gpu", "main_gpu", "use_mmap", "use_mlock", "numa", "low_vram",
      "f16_kv", "logits_all", "vocab_only", "embedding_only"}},
    {kLocal, {"backend_sampling"}},
    {kLocal | kResponsesApi, {"timings_per_token"}},
    {kLocal, {"cache_prompt"}},                           // what is reused changes no answer
    {kChatApi | kResponsesApi, {"parallel_tool_calls"}},  // tools are refused
    // What matters only beside a field that is refused: dry_multiplier, mirostat, dynatemp_range.
    {kLocal, {"dry_base", "dry_allowed_length", "dry_penalty_last_n", "dry_sequence_breakers"}},
    {kFree, {"mirostat_tau", "mirostat_eta"}},
    {kLocal, {"dynatemp_exponent"}},
};

// What would change the answer, and is not supported. An empty value asks for what happens anyway.
const NamedFields kRefused[] = {
    {kChatApi | kMessagesApi | kResponsesApi | kOllamaApi, {"tools"}},
    {kChatApi,
     {"functions", "function_call", "audio", "prediction", "web_search_options",
      "reasoning_effort"}},
    {kChatApi | kResponsesApi, {"moderation"}},
    {kResponsesApi,
     {"reasoning", "previous_response_id", "conversation", "prompt", "background",
      "max_tool_calls"}},
    {kMessagesApi | kResponsesApi, {"context_management"}},
    {kMessagesApi, {"container", "mcp_servers", "output_config", "output_format"}},
    {kCompletionsApi | kOllamaApi, {"suffix"}},
    {kOllamaApi, {"template", "context", "images"}},
    {kOllamaChatApi, {"prompt", "system", "raw"}},
    {kGenerateApi, {"messages"}},
    {kOpenAi, {"post_sampling_probs"}},
    {kLocal, {"grammar_lazy", "dry_multiplier", "dynatemp_range", "t_max_predict_ms"}},
    {kFree, {"mirostat"}},
    {kLlamaApi, {"n_indent", "image_data"}},
};

bool lists(std::span<const NamedFields> table, unsigned api, std::string_view name) {
  return std::ranges::any_of(table, [&](const NamedFields& row) {
    return (row.apis & api) != 0 && std::ranges::find(row.names, name) != row.names.end();
  });
}

void read_field(const JsonField& field, unsigned api, FieldTarget target) {
  const auto is_it = [&](const auto& entry) {
    return (entry.apis & api) != 0 && entry.name == field.key();
  };
  const auto* const number = std::ranges::find_if(kNumbers, is_it);
  const auto* const other = std::ranges::find_if(kOthers, is_it);
  if (number != std::end(kNumbers)) {
    read_sampler(*number, field, target.settings.generation.sampler);
  } else if (other != std::end(kOthers)) {
    other->read(field, target);
  } else if (lists(kRefused, api, field.key())) {
    if (!field.is_empty()) field.fail("is not supported yet");
  } else if (!lists(kPassedOver, api, field.key())) {
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
