#include "tokenizer/chat_template.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/utf8.h"
#include "jinja/interpreter.h"
#include "jinja/parser.h"

namespace limpid {
namespace {

using nlohmann::ordered_json;

// Appends the place to a problem: "…(chat template, line 3, column 7)". `at` is an offset in
// `source`.
std::string with_place(std::string_view problem, std::string_view source, size_t at) {
  at = std::min(at, source.size());
  const std::string_view before = source.substr(0, at);
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const auto column = unicode::n_characters(before.substr(before.rfind('\n') + 1)) + 1;
  return fmt::format("{} (chat template, line {}, column {})", problem, line, column);
}

// The roles that applications use. A template may form a control token from a role ('<|' + role +
// '|>'), so these names count as the template's text. Any other role is data.
constexpr std::string_view kRoles[] = {"system",      "developer", "user",     "assistant",
                                       "model",       "tool",      "function", "observation",
                                       "environment", "ipython"};

// A known role becomes a literal string, which counts as the template's own text. Every other value
// is data, from which no control token can be formed.
jinja::Value value_of(jinja::Budget& budget, const std::string& key, const ordered_json& value) {
  if (key == "role" && value.is_string()) {
    const auto& role = value.get_ref<const std::string&>();
    if (std::ranges::find(kRoles, role) != std::end(kRoles))
      return jinja::make_literal_string(role);
  }
  return jinja::from_json(budget, value);
}

// The reasoning of a message may come under three names. It is passed as `thinking` and as
// `reasoning_content` too, because templates read different ones.
jinja::Value message_value(jinja::Budget& budget, const ordered_json& message) {
  std::vector<std::pair<jinja::Value, jinja::Value>> entries;
  const auto add = [&](std::string_view key, jinja::Value value) {
    entries.emplace_back(make_string(budget, jinja::TracedView(key, jinja::Origin::kData)),
                         std::move(value));
  };
  std::optional<jinja::Value> reasoning;
  for (const char* name : {"reasoning_content", "thinking", "reasoning"}) {
    const auto found = message.find(name);
    if (found == message.end() || found->is_null()) continue;
    reasoning = jinja::from_json(budget, *found);
    add("thinking", *reasoning);
    break;
  }
  for (const auto& [key, value] : message.items()) add(key, value_of(budget, key, value));
  if (reasoning) add("reasoning_content", *reasoning);
  return make_dict(budget, std::move(entries));
}

// The variable `messages`: a list of dictionaries.
jinja::Value messages_value(jinja::Budget& budget, const ordered_json& messages) {
  LIMPID_CHECK(ArgumentError, messages.is_array(), "messages must be an array of objects");
  std::vector<jinja::Value> values;
  for (const auto& message : messages) {
    LIMPID_CHECK(ArgumentError, message.is_object(), "message {} is not an object", values.size());
    values.push_back(message_value(budget, message));
  }
  return make_list(budget, std::move(values));
}

// Defines the variables of a template.
void define_inputs(jinja::Interpreter& interpreter, const TemplateInputs& inputs) {
  jinja::Budget& budget = interpreter.budget();
  const auto json = [&](std::string_view name, const ordered_json& value) {
    interpreter.define(name, jinja::from_json(budget, value));
  };
  interpreter.define("messages", messages_value(budget, inputs.messages));
  json("tools", inputs.tools);
  interpreter.define("documents", jinja::Value());
  interpreter.define("add_generation_prompt", jinja::Value(inputs.add_generation_prompt));
  if (!inputs.bos_token.empty())
    interpreter.define("bos_token", jinja::make_literal_string(inputs.bos_token));
  if (!inputs.eos_token.empty())
    interpreter.define("eos_token", jinja::make_literal_string(inputs.eos_token));
  if (inputs.extra.is_null()) return;
  for (const auto& [name, value] : inputs.extra.items()) {
    LIMPID_CHECK(ArgumentError, std::ranges::count(kFixedTemplateVariables, name) == 0,
                 "'{}' cannot be an extra variable of a chat template", name);
    json(name, value);
  }
}

}  // namespace

ChatTemplate::ChatTemplate(std::string source, TemplateLimits limits)
    : source_(std::move(source)), normalized_(jinja::normalize_newlines(source_)), limits_(limits) {
  try {
    parsed_ = std::make_shared<jinja::Template>(jinja::parse(normalized_, limits.max_depth));
  } catch (const jinja::SyntaxFault& fault) {
    throw UnsupportedError(with_place(fault.message, normalized_, fault.at));
  }
}

std::string ChatTemplate::render(const TemplateInputs& inputs) const {
  return render_traced(inputs).bytes();
}

// Each call has its own interpreter and its own budget of steps, memory and output, so that a
// hostile template cannot exhaust the process, and a template can be rendered by several threads.
jinja::TracedText ChatTemplate::render_traced(const TemplateInputs& inputs) const {
  LIMPID_CHECK(ArgumentError, inputs.extra.is_null() || inputs.extra.is_object(),
               "the extra variables of a chat template must be an object");
  jinja::Budget budget(limits_.max_steps, limits_.max_memory_bytes, limits_.max_depth);
  jinja::Interpreter interpreter(budget, limits_.max_output_bytes, inputs.now);
  try {
    define_inputs(interpreter, inputs);
    return interpreter.render(*parsed_);
  } catch (const jinja::Fault& fault) {
    const std::string what = with_place(fault.what(), normalized_, interpreter.position());
    if (fault.kind() == jinja::Fault::Kind::kUnsupported) throw UnsupportedError(what);
    if (fault.kind() == jinja::Fault::Kind::kRaised) throw TemplateRefusal(what);
    throw Error(what);
  }
}

}  // namespace limpid
