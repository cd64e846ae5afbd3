#include "server/request_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <variant>

#include "server/sampling_fields.h"

namespace limpid {
namespace {

constexpr double kAny = 1e30;
constexpr unsigned kOpenAi = kChatApi | kCompletionsApi;
constexpr unsigned kLocal = kOpenAi | kLlamaApi;  // take llama-server's samplers
constexpr unsigned kBodies = kLocal | kMessagesApi | kResponsesApi | kOllamaApi;
constexpr unsigned kSampled = kLocal | kMessagesApi | kResponsesApi | kOllamaOptionsApi;
constexpr unsigned kFree = kLocal | kOllamaOptionsApi;

constexpr int64_t kMostChoices = 64;
constexpr int64_t kMostTopLogprobs = 20;

// One table for all APIs. A field that is in no row for an API is an error there: so a typing error
// never goes unnoticed, and nobody takes an answer for one that a field has shaped when it has not.
//
// A number of SamplerOptions.
struct NumberField {
  std::string_view name;
  unsigned apis;
  std::variant<float SamplerOptions::*, int32_t SamplerOptions::*, int64_t SamplerOptions::*>
      member;
  double least = -kAny;
  double most = kAny;
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
    {"repeat_penalty", kFree, &SamplerOptions::repeat_penalty, 1e-6},
    {"presence_penalty", kFree, &SamplerOptions::presence_penalty},
    {"frequency_penalty", kFree, &SamplerOptions::frequency_penalty},
    {"min_keep", kLocal, &SamplerOptions::min_keep, 0},
    {"seed", kFree, &SamplerOptions::seed, -1, 1.8e19},
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

void read_max_tokens(const JsonField& field, FieldTarget target) {
  target.settings.generation.n_predict = field.integer(0, kMostTokensOfField);
}
void read_n_predict(const JsonField& field, FieldTarget target) {
  target.settings.generation.n_predict = field.integer(-2, kMostTokensOfField);
}
void read_ignore_eos(const JsonField& field, FieldTarget target) {
  target.settings.generation.sampler.ignore_eos = field.boolean();
}
void read_stream_options(const JsonField& field, FieldTarget target) {
  for (const JsonField& member : field.members()) {
    if (member.key() == "include_usage") {
      target.settings.include_usage = !member.json().is_null() && member.boolean();
    } else if (member.key() != "include_obfuscation") {
      member.fail("is not a known field");
    }
  }
}
// True in a chat, a number in a completion.
void read_logprobs(const JsonField& field, FieldTarget target) {
  if (field.json().is_boolean()) {
    target.settings.wants_logprobs = field.boolean();
  } else {
    target.settings.wants_logprobs = true;
    target.settings.n_top_logprobs = static_cast<int32_t>(field.integer(0, kMostTopLogprobs));
  }
}
void read_top_logprobs(const JsonField& field, FieldTarget target) {
  target.settings.n_top_logprobs = static_cast<int32_t>(field.integer(0, kMostTopLogprobs));
}
void read_n_probs(const JsonField& field, FieldTarget target) {
  target.settings.n_top_logprobs = static_cast<int32_t>(field.integer(0, 100));
  target.settings.wants_logprobs = target.settings.n_top_logprobs > 0;
}
void read_n(const JsonField& field, FieldTarget target) {
  target.settings.n_choices = field.integer(1, kMostChoices);
}
void read_stream(const JsonField& field, FieldTarget target) {
  target.settings.stream = field.boolean();
}
void read_echo(const JsonField& field, FieldTarget target) {
  target.settings.echo = field.boolean();
}
void read_return_tokens(const JsonField& field, FieldTarget target) {
  target.settings.return_tokens = field.boolean();
}
void read_response_fields(const JsonField& field, FieldTarget target) {
  for (const JsonField& entry : field.elements())
    target.settings.response_fields.push_back(entry.string());
}
// An empty list names no adapters, and means the same as none: so llama-server has it.
void read_lora(const JsonField& field, FieldTarget target) {
  std::vector<AdapterScale> scales = read_adapter_scales(field);
  if (!scales.empty()) target.settings.adapter_scales = std::move(scales);
}
void read_verbose(const JsonField& field, FieldTarget target) {
  target.settings.verbose = field.boolean();
}
void read_return_progress(const JsonField& field, FieldTarget target) {
  target.settings.return_progress = field.boolean();
}
void read_after_sampling(const JsonField& field, FieldTarget target) {
  target.settings.generation.logprobs_after_sampling = field.boolean();
}
void read_variables(const JsonField& field, FieldTarget target) {
  field.members();  // an object
  target.settings.template_variables = field.json();
}
void read_generation_prompt(const JsonField& field, FieldTarget target) {
  target.settings.add_generation_prompt = field.boolean();
}
void read_continue(const JsonField& field, FieldTarget target) {
  target.settings.continues_last = field.boolean();
}
void read_one(const JsonField& field, FieldTarget) {
  if (field.integer(0, kMostChoices) > 1) field.fail("can only be 1");
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
void read_text_format(const JsonField& field, FieldTarget target) {
  for (const JsonField& member : field.members()) {
    if (member.json().is_null() || member.key() == "verbosity") continue;
    if (member.key() != "format") member.fail("is not a known field");
    read_response_format(member, target);
  }
}
void read_truncation(const JsonField& field, FieldTarget) {
  if (field.string() != "disabled") field.fail("can only be \"disabled\"");
}
void read_choice_of_tool(const JsonField& field, FieldTarget target) {
  if (field.json().is_object()) return read_plain_type(field, target);
  if (field.string() != "none" && field.string() != "auto") field.fail("is not supported yet");
}
// The caller's: messages, prompt, …
void leave(const JsonField&, FieldTarget) {}
// Has no effect on the text of the answer.
void ignore(const JsonField&, FieldTarget) {}
// Would change the answer, and is not there. Its empty value is what happens anyway.
void refuse(const JsonField& field, FieldTarget) {
  if (!field.is_empty()) field.fail("is not supported yet");
}

struct OtherField {
  std::string_view name;
  unsigned apis;
  void (*read)(const JsonField& field, FieldTarget target);
};

constexpr OtherField kOthers[] = {
    {"messages", kChatApi | kMessagesApi | kOllamaApi, leave},
    {"prompt", kCompletionsApi | kLlamaApi | kOllamaApi, leave},
    {"system", kMessagesApi | kOllamaApi, leave},
    {"input", kResponsesApi, leave},
    {"instructions", kResponsesApi, leave},
    {"options", kOllamaApi, leave},
    {"raw", kOllamaApi, leave},

    {"stream", kBodies, read_stream},
    {"stream_options", kOpenAi | kResponsesApi, read_stream_options},
    {"n", kOpenAi, read_n},
    {"best_of", kCompletionsApi, read_one},
    {"max_tokens", kLocal | kMessagesApi, read_max_tokens},
    {"max_completion_tokens", kChatApi, read_max_tokens},
    {"max_output_tokens", kResponsesApi, read_max_tokens},
    {"n_predict", kLocal, read_n_predict},
    {"num_predict", kOllamaOptionsApi, read_n_predict},
    {"stop", kFree, read_stop},
    {"stop_sequences", kMessagesApi, read_stop},
    {"logit_bias", kLocal, read_logit_bias},
    {"ignore_eos", kLocal, read_ignore_eos},
    {"samplers", kLocal, read_samplers},
    {"grammar", kLocal, read_grammar},
    {"logprobs", kOpenAi | kOllamaApi, read_logprobs},
    {"top_logprobs", kChatApi | kResponsesApi | kOllamaApi, read_top_logprobs},
    {"n_probs", kLocal, read_n_probs},
    {"echo", kCompletionsApi, read_echo},
    {"lora", kLocal, read_lora},
    {"return_tokens", kLlamaApi, read_return_tokens},
    {"response_fields", kLlamaApi, read_response_fields},
    {"verbose", kChatApi, read_verbose},
    {"return_progress", kChatApi | kLlamaApi | kResponsesApi, read_return_progress},
    {"post_sampling_probs", kLlamaApi, read_after_sampling},
    {"chat_template_kwargs", kChatApi, read_variables},
    {"add_generation_prompt", kChatApi, read_generation_prompt},
    {"continue_final_message", kChatApi, read_continue},
    {"modalities", kChatApi, read_text_only},
    {"response_format", kLocal, read_response_format},
    {"json_schema", kLocal, read_schema},
    {"thinking", kMessagesApi, read_plain_type},
    {"text", kResponsesApi, read_text_format},
    {"truncation", kResponsesApi, read_truncation},
    {"tool_choice", kChatApi | kMessagesApi | kResponsesApi, read_choice_of_tool},

    {"model", kBodies, ignore},
    {"user", kOpenAi | kResponsesApi, ignore},
    {"metadata", kChatApi | kMessagesApi | kResponsesApi, ignore},
    {"store", kChatApi | kResponsesApi, ignore},
    {"service_tier", kChatApi | kMessagesApi | kResponsesApi, ignore},
    {"safety_identifier", kChatApi | kResponsesApi, ignore},
    {"prompt_cache_key", kChatApi | kResponsesApi, ignore},
    {"prompt_cache_retention", kChatApi | kResponsesApi, ignore},
    {"prompt_cache_options", kChatApi | kResponsesApi, ignore},
    {"cache_control", kMessagesApi, ignore},
    {"inference_geo", kMessagesApi, ignore},
    {"speed", kMessagesApi, ignore},
    {"diagnostics", kMessagesApi, ignore},
    {"user_profile_id", kMessagesApi, ignore},
    {"workspace_id", kMessagesApi, ignore},
    {"parallel_tool_calls", kChatApi | kResponsesApi, ignore},  // tools are refused
    {"cache_prompt", kLocal, ignore},  // what is reused never changes the answer
    {"id_slot", kLocal, ignore},
    {"backend_sampling", kLocal, ignore},
    {"return_progress", kCompletionsApi, ignore},
    {"timings_per_token", kLocal | kResponsesApi, ignore},
    {"dry_base", kLocal, ignore},  // the next four matter only where dry_multiplier is not 0
    {"dry_allowed_length", kLocal, ignore},
    {"dry_penalty_last_n", kLocal, ignore},
    {"dry_sequence_breakers", kLocal, ignore},
    {"mirostat_tau", kFree, ignore},  // where mirostat is not 0
    {"mirostat_eta", kFree, ignore},
    {"dynatemp_exponent", kLocal, ignore},  // where dynatemp_range is not 0
    {"reasoning_format", kChatApi, ignore},
    {"keep_alive", kOllamaApi, ignore},
    {"num_ctx", kOllamaOptionsApi, ignore},  // the context is the server's
    {"num_batch", kOllamaOptionsApi, ignore},
    {"num_thread", kOllamaOptionsApi, ignore},
    {"num_gpu", kOllamaOptionsApi, ignore},
    {"main_gpu", kOllamaOptionsApi, ignore},
    {"use_mmap", kOllamaOptionsApi, ignore},
    {"numa", kOllamaOptionsApi, ignore},

    {"tools", kChatApi | kMessagesApi | kResponsesApi | kOllamaApi, refuse},
    {"functions", kChatApi, refuse},
    {"function_call", kChatApi, refuse},
    {"audio", kChatApi, refuse},
    {"prediction", kChatApi, refuse},
    {"web_search_options", kChatApi, refuse},
    {"reasoning_effort", kChatApi, refuse},
    {"verbosity", kChatApi, refuse},
    {"reasoning", kResponsesApi, refuse},
    {"include", kResponsesApi, refuse},
    {"previous_response_id", kResponsesApi, refuse},
    {"conversation", kResponsesApi, refuse},
    {"prompt", kResponsesApi, refuse},
    {"background", kResponsesApi, refuse},
    {"max_tool_calls", kResponsesApi, refuse},
    {"container", kMessagesApi, refuse},
    {"mcp_servers", kMessagesApi, refuse},
    {"context_management", kMessagesApi | kResponsesApi, refuse},
    {"output_config", kMessagesApi, refuse},
    {"output_format", kMessagesApi, refuse},
    {"moderation", kChatApi | kResponsesApi, refuse},
    {"suffix", kCompletionsApi | kOllamaApi, refuse},
    {"template", kOllamaApi, refuse},
    {"context", kOllamaApi, refuse},
    {"images", kOllamaApi, refuse},
    {"format", kOllamaApi, refuse},
    {"think", kOllamaApi, refuse},
    {"grammar_lazy", kLocal, refuse},
    {"dry_multiplier", kLocal, refuse},
    {"mirostat", kFree, refuse},
    {"dynatemp_range", kLocal, refuse},
    {"post_sampling_probs", kOpenAi, refuse},
    {"t_max_predict_ms", kLocal, refuse},
    {"n_indent", kLlamaApi, refuse},
    {"image_data", kLlamaApi, refuse},
};

}  // namespace

// A name may stand twice in the table, for different APIs.
void read_settings(const JsonField& object, ApiName api, const Tokenizer* tokenizer,
                   RequestSettings& settings) {
  const auto belongs = [&](const auto& entry, const JsonField& field) {
    return (entry.apis & api) != 0 && entry.name == field.key();
  };
  for (const JsonField& field : object.members()) {
    if (field.json().is_null()) continue;
    const auto* const number =
        std::find_if(std::begin(kNumbers), std::end(kNumbers),
                     [&](const auto& entry) { return belongs(entry, field); });
    const auto* const other =
        std::find_if(std::begin(kOthers), std::end(kOthers),
                     [&](const auto& entry) { return belongs(entry, field); });
    if (number != std::end(kNumbers)) {
      read_sampler(*number, field, settings.generation.sampler);
    } else if (other != std::end(kOthers)) {
      other->read(field, {settings, tokenizer});
    } else {
      field.fail("is not a known field");
    }
  }
  if (api == kChatApi && settings.n_top_logprobs > 0 && !settings.wants_logprobs)
    throw ApiError(400, "top_logprobs needs logprobs to be true", "top_logprobs");
  settings.generation.n_logprobs = settings.wants_logprobs ? settings.n_top_logprobs : -1;
}

}  // namespace limpid
