// `limpid template`: a chat template, rendered.
//
// Shows the text that `limpid chat` sends to the model, without running the model: to see why an
// answer is odd, or to test a template. The inputs are those that transformers passes to a
// template: messages, tools, add_generation_prompt, bos_token, eos_token, strftime_now, and any
// others by name.

#include "base/json_text.h"
#include "cli/command.h"
#include "generate/chat_prompt.h"
#include "model/tokenizer_from_metadata.h"

namespace limpid::cli {
namespace {

struct TemplateFlags {
  ModelFlags model;
  std::string template_file;
  std::string messages;
  std::string tools;
  std::string variables;
  std::optional<std::string> bos;
  std::optional<std::string> eos;
  std::optional<int64_t> now;
  bool no_generation_prompt = false;
};

// JSON of the kind that is wanted, an array or an object; `what` names it in errors.
Json parse_json(const std::string& text, const std::string& what, Json::value_t wanted) {
  Json json = limpid::parse_json(text, what);
  LIMPID_CHECK(ArgumentError, json.type() == wanted, "{} is not {} but JSON of type {}", what,
               wanted == Json::value_t::array ? "an array" : "an object", json.type_name());
  return json;
}

Json read_array(const std::string& path) {
  return parse_json(read_text(path), path == "-" ? "standard input" : path, Json::value_t::array);
}

// The piece that `key` (an id) names, or "".
std::string token_of(const Checkpoint& checkpoint, std::string_view key) {
  const auto id = checkpoint.metadata.integer(key);
  const auto* pieces = checkpoint.metadata.strings("tokenizer.ggml.tokens");
  if (!id || pieces == nullptr || *id < 0 || *id >= static_cast<int64_t>(pieces->size())) return "";
  return (*pieces)[static_cast<size_t>(*id)];
}

// bos_token and eos_token as the checkpoint names them, by GGUF's keys or by its tokenizer's files.
void set_tokens(const Checkpoint& checkpoint, TemplateInputs& inputs) {
  if (has_tokenizer(checkpoint.attachments))
    return add_bos_and_eos(inputs, tokenizer_spec_from(checkpoint));
  inputs.bos_token = token_of(checkpoint, "tokenizer.ggml.bos_token_id");
  inputs.eos_token = token_of(checkpoint, "tokenizer.ggml.eos_token_id");
}

void declare(CLI::App& app, TemplateFlags& values) {
  add_option(app, "--chat-template-file FILE", values.template_file, "a Jinja template",
             "LLAMA_ARG_CHAT_TEMPLATE_FILE");
  add_option(app, "--messages FILE", values.messages,
             "a JSON array of {\"role\", \"content\"}; - is standard input");
  add_option(app, "--tools FILE", values.tools, "a JSON array of tools");
  add_option(app, "--chat-template-kwargs JSON", values.variables, "an object of more variables");
  add_switch(app, "--no-generation-prompt", values.no_generation_prompt,
             "do not open the answer's turn");
  add_option(app, "--bos TEXT", values.bos, "bos_token (the model's own)");
  add_option(app, "--eos TEXT", values.eos, "eos_token (the model's own)");
  add_option(app, "--now SECONDS", values.now,
             "Unix time for strftime_now, as UTC (the clock, in local time)");
  declare_model_path(app, values.model);
  declare_overrides(app, values.model);
}

// A model is needed only for its template and for the text of its BOS and EOS.
void run(const TemplateFlags& values) {
  LIMPID_CHECK(ArgumentError, !values.messages.empty(), "which messages? give --messages FILE");

  std::string source;
  TemplateInputs inputs;
  if (!values.model.model.empty() || !values.model.repository.empty()) {
    const auto checkpoint = open_header(values.model);
    source = checkpoint->metadata.string("tokenizer.chat_template").value_or("");
    set_tokens(*checkpoint, inputs);
  }
  if (!values.template_file.empty()) source = read_text(values.template_file);
  LIMPID_CHECK(ArgumentError, !source.empty(),
               "{} has no chat template; use a model that has one, or --chat-template-file",
               values.template_file.empty() ? "this model" : values.template_file);
  if (values.bos) inputs.bos_token = *values.bos;
  if (values.eos) inputs.eos_token = *values.eos;
  inputs.messages = read_array(values.messages);
  if (!values.tools.empty()) inputs.tools = read_array(values.tools);
  if (!values.variables.empty()) {
    inputs.extra = parse_json(values.variables, "--chat-template-kwargs", Json::value_t::object);
  }
  inputs.add_generation_prompt = !values.no_generation_prompt;
  inputs.now = values.now;
  write_out(ChatTemplate(source).render(inputs));
}

}  // namespace

Command template_command() {
  return {"render a chat template",
          "template (-m FILE | --chat-template-file FILE) --messages FILE [options]",
          "Prints exactly what the chat template makes of the messages.",
          "echo '[{\"role\": \"user\", \"content\": \"Hello\"}]' | limpid template -m smollm2 "
          "--messages -",
          bind<TemplateFlags, declare, run>};
}

}  // namespace limpid::cli
