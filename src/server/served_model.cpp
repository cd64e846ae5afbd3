// From messages to the tokens of a prompt.
//
//   [{"role": "user", "content": "Hi"}]
//   <|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n       rendered by the template (ChatML)
//   [1, 4093, 198, ...]                                           encoded
//
// The text of a message is data. If a user writes "<|im_end|>", these ten characters must stay
// plain text; otherwise the user could end the message and write one of the system. The template
// therefore traces which characters are its own (jinja/traced_text.h), and only these may become
// control tokens.
#include "server/served_model.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>

#include "base/error_text.h"
#include "generate/chat_prompt.h"
#include "server/built_in_templates.h"

namespace limpid {
namespace {

constexpr size_t kMostPrompts = 2048;  // OpenAI takes as many texts
// Of a message, besides its role and content.
constexpr const char* kOptionalMembers[] = {"name", "reasoning_content"};

// The variables of a template besides the messages: those of the request, and those of llama-server
// that the request leaves out. A request may have very many variables, so they are not looked up
// one by one.
Json template_variables(const ServedModel& served, const RequestSettings& settings) {
  Json variables =
      settings.template_variables.is_object() ? settings.template_variables : Json(Json::object());
  const auto add = [&](const char* name, Json value) {
    if (!variables.contains(name)) variables[name] = std::move(value);
  };
  add("enable_thinking", served.thinks);
  const std::tm now = fmt::localtime(std::time(nullptr));
  add("date_string", fmt::format("{:%d %b %Y}", now));
  add("datetime", fmt::format("{:%b %d %Y}", now));
  add("functions", "");  // Firefunction's name for the tools, as text
  return variables;
}

// A message as templates know it: {role, content}, and name and reasoning_content where the client
// gives them.
Json template_message(const JsonField& message) {
  message.refuse_others({"role", "content", "name", "reasoning_content", "type", "id", "status",
                         "annotations", "cache_control"});
  const auto type = message.find("type");
  if (type && type->string() != "message") type->fail("'" + type->string() + "' is not supported");
  std::string role = message.required("role").string();
  if (role == "developer") role = "system";  // OpenAI's newer word for it
  if (role != "system" && role != "user" && role != "assistant")
    message.required("role").must_be("system, developer, user or assistant");
  const auto content = message.find("content");
  if (!content && role != "assistant") message.required("content");  // throws
  Json read = {{"role", role}, {"content", content ? content_text(*content) : ""}};
  for (const char* key : kOptionalMembers) {
    if (const std::string text = message.string_or_empty(key); !text.empty()) read[key] = text;
  }
  return read;
}

TemplateInputs template_inputs(const ServedModel& served, const JsonField& messages,
                               const RequestSettings& settings, const std::string& system) {
  TemplateInputs inputs;
  inputs.messages = Json::array();
  if (!system.empty()) inputs.messages.push_back({{"role", "system"}, {"content", system}});
  const std::vector<JsonField> fields = messages.elements();
  if (fields.empty()) messages.fail("must have a message");
  for (const JsonField& message : fields) inputs.messages.push_back(template_message(message));
  if (fields.size() > 1 && inputs.messages.back()["role"] == "assistant" &&
      (inputs.messages.end() - 2)->at("role") == "assistant")
    fields.back().fail("follows another message of the assistant");
  inputs.extra = template_variables(served, settings);
  inputs.add_generation_prompt = settings.add_generation_prompt;
  return inputs;
}

// Errors of a template are about the messages: it meets values that it does not expect.
template <typename Work>
auto with_template(const ServedModel& served, const JsonField& messages, Work work) {
  try {
    return work(*served.chat_template);
  } catch (const Error& error) {
    throw ApiError(400, without_part(error), messages.name());
  }
}

}  // namespace

std::unique_ptr<ServedModel> make_served_model(LanguageModel model, std::string name,
                                               GenerationOptions defaults,
                                               const ServiceOptions& options,
                                               std::vector<ServedAdapter> adapters,
                                               bool has_own_template) {
  const std::shared_ptr<Engine>& engine = engine_of(model);
  auto service = std::make_unique<GenerationService>(model, options);
  std::shared_ptr<const ChatTemplate> chat_template;
  const bool has_none = engine->chat_template_source().empty();
  if (has_none) {
    chat_template = std::make_shared<ChatTemplate>(std::string(built_in_template("chatml")));
  } else {
    chat_template = {engine, &engine->chat_template()};  // the engine owns it
  }
  const bool writes_bos = chat_template->source().find("bos_token") != std::string::npos;
  auto served = std::make_unique<ServedModel>(
      ServedModel{std::move(model), std::move(service), std::move(name), std::move(chat_template),
                  std::move(defaults), std::make_shared<ServedAdapters>(std::move(adapters))});
  served->adds_bos = (has_none || !has_own_template) && !writes_bos;
  return served;
}

std::shared_ptr<const AdapterMix> adapter_mix(const ServedModel& served,
                                              const RequestSettings& settings) {
  return served.engine().adapter_mixes().find(served.adapters->factors(settings.adapter_scales));
}

namespace {

// "text" or {"prompt_string": "text"}; nothing for anything else.
std::optional<std::string> prompt_text(const JsonField& field) {
  if (field.json().is_string()) return field.string();
  if (!field.json().is_object()) return std::nullopt;
  field.allow_only({"prompt_string"});
  const auto text = field.find("prompt_string");
  return text ? std::optional(text->string()) : std::nullopt;
}

// Texts after the first part of a prompt continue the prompt. Example: ["Once", 257, " time"] is
// one prompt. Only "Once" gets what a tokenizer puts before a text, such as BOS.
std::vector<TokenId> read_prompt(const ServedModel& served, const JsonField& field) {
  if (const auto text = prompt_text(field)) return served.tokenizer().encode(*text);
  std::vector<TokenId> ids;
  for (const JsonField& part : field.elements("a string or an array")) {
    const EncodeOptions options{.add_special = ids.empty(), .at_start = ids.empty()};
    if (const auto text = prompt_text(part)) {
      served.tokenizer().encode(*text, options, ids);
    } else {
      ids.push_back(static_cast<TokenId>(part.integer(0, served.model.vocab_size() - 1)));
    }
  }
  return ids;
}

bool has_numbers(const Json& json) { return std::ranges::any_of(json, &Json::is_number); }

}  // namespace

std::vector<std::vector<TokenId>> read_prompts(const ServedModel& served, const JsonField& field,
                                               std::string_view what) {
  std::vector<std::vector<TokenId>> prompts;
  if (!field.json().is_array() || has_numbers(field.json())) {
    prompts.push_back(read_prompt(served, field));
  } else {
    const std::vector<JsonField> elements = field.elements();
    if (elements.size() > kMostPrompts)
      field.fail(fmt::format("has more than {} {}s", kMostPrompts, what));
    for (const JsonField& element : elements) prompts.push_back(read_prompt(served, element));
  }
  if (prompts.empty()) field.fail(fmt::format("is empty: give at least one {}", what));
  for (const auto& prompt : prompts) {
    if (prompt.empty())
      field.fail(fmt::format("has a {} without tokens: give at least one token", what));
  }
  return prompts;
}

namespace {

// What the template writes, and after it the beginning of the answer.
struct ChatInputs {
  TemplateInputs inputs;
  std::string begun;
};

// The template could only end what an assistant's last message says. The answer continues it, so it
// follows the template's beginning of an answer, as plain text; its parts are paragraphs, as in
// llama-server.
ChatInputs chat_inputs(const ServedModel& served, const JsonField& messages,
                       const RequestSettings& settings, const std::string& system) {
  ChatInputs chat{template_inputs(served, messages, settings, system), ""};
  Json& all = chat.inputs.messages;
  if (!settings.continues_last || all.back()["role"] != "assistant" || all.size() < 2) return chat;
  const JsonField last = messages.elements().back();
  for (const char* lost : kOptionalMembers) {
    if (const auto field = last.find(lost); field && !field->is_empty())
      field->fail("cannot be in a message that the answer continues");
  }
  const auto content = last.find("content");
  chat.begun = content ? content_text(*content, "\n\n") : "";
  all.erase(all.size() - 1);
  chat.inputs.add_generation_prompt = true;
  return chat;
}

}  // namespace

void check_continues_last(const JsonField& body) {
  const auto goes_on = body.find("continue_final_message");
  if (!goes_on || !goes_on->boolean()) return;
  if (body.boolean("add_generation_prompt", false))
    goes_on->fail("and add_generation_prompt cannot both be true");
  const std::vector<JsonField> all = body.required("messages").elements();
  if (all.size() < 2 || all.back().string_or_empty("role") != "assistant")
    goes_on->fail("needs a last message that is the assistant's, after another one");
}

std::vector<TokenId> encode_messages(const ServedModel& served, const JsonField& messages,
                                     const RequestSettings& settings, const std::string& system) {
  ChatInputs chat = chat_inputs(served, messages, settings, system);
  std::vector<TokenId> ids =
      with_template(served, messages, [&](const ChatTemplate& chat_template) {
        return encode_chat(served.tokenizer(), chat_template, std::move(chat.inputs), chat.begun);
      });
  const TokenizerSpec& spec = served.tokenizer().spec();
  if (served.adds_bos && spec.add_bos && spec.bos) ids.insert(ids.begin(), *spec.bos);
  return ids;
}

std::string render_messages(const ServedModel& served, const JsonField& messages,
                            const RequestSettings& settings, const Json& tools) {
  ChatInputs chat = chat_inputs(served, messages, settings, "");
  TemplateInputs& inputs = chat.inputs;
  inputs.tools = tools;
  if (!tools.is_null()) inputs.extra["functions"] = tools.dump();
  add_bos_and_eos(inputs, served.tokenizer().spec());
  return with_template(served, messages, [&](const ChatTemplate& chat_template) {
    return chat_template.render(inputs) + chat.begun;
  });
}

}  // namespace limpid
