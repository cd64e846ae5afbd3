// The model's own chat template (Jinja), rendered as `transformers` renders it.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "jinja/traced_text.h"
#include "limpid/error.hpp"

namespace limpid {

namespace jinja {
struct Template;
}

struct TemplateLimits {
  int64_t max_depth = 100;  // nesting of the parser and of calls
  // Statements and loop iterations; expressions and copied bytes count too.
  int64_t max_steps = 1'000'000;
  int64_t max_output_bytes = 16 << 20;
  int64_t max_memory_bytes = 64 << 20;  // of all values alive at one time, including inputs
};

// The variables of a template, under the names that `apply_chat_template` uses. Objects keep the
// order of their keys.
struct TemplateInputs {
  nlohmann::ordered_json messages;  // array of {role, content, …}
  nlohmann::ordered_json tools;     // array, or null: `tools` is none
  nlohmann::ordered_json extra;  // object: more variables (enable_thinking, documents, …), or null
  std::string bos_token;         // empty: undefined, as for a tokenizer without BOS
  std::string eos_token;
  bool add_generation_prompt = true;
  // Unix seconds for strftime_now, which are UTC; without a value: the clock, in local time.
  std::optional<int64_t> now;
};

// Variables of a template that TemplateInputs::extra cannot replace.
inline constexpr std::array<std::string_view, 3> kFixedTemplateVariables = {
    "messages", "tools", "add_generation_prompt"};

// The template called raise_exception: the template works but rejects these messages.
class TemplateRefusal : public Error {
 public:
  using Error::Error;
};

// A parsed template. It is immutable and can be rendered by many threads at once. Example of a
// template and its result for one user message "Hi":
//   {% for m in messages %}<|{{ m.role }}|>{{ m.content }}<|end|>{% endfor %}
//   <|user|>Hi<|end|>
class ChatTemplate {
 public:
  // Throws UnsupportedError, with line and column, for syntax that the interpreter does not
  // support.
  explicit ChatTemplate(std::string source, TemplateLimits limits = {});

  // Renders `messages`, an array of {role, content, …}. Throws TemplateRefusal with the template's
  // message on raise_exception, and Error with line and column when a limit is exceeded or a value
  // has the wrong type.
  std::string render(const TemplateInputs& inputs) const;
  // Renders the same text with the origin of each byte. Literal text of the template, BOS, EOS and
  // the usual names of roles belong to the template; everything else is data.
  jinja::TracedText render_traced(const TemplateInputs& inputs) const;
  const std::string& source() const { return source_; }

 private:
  std::string source_;      // as given
  std::string normalized_;  // as parsed; error messages refer to it
  TemplateLimits limits_;
  std::shared_ptr<const jinja::Template> parsed_;
};

}  // namespace limpid
