#include "server/built_in_templates.h"

namespace limpid {
namespace {

// Formats that many models were trained with, under the names that llama-server gives them; for
// files that carry no template of their own. A model answers well only in the format of its
// training, because it has learned what follows these marks and no others. "Hi" of a user, as a
// prompt for an answer:
//   chatml   <|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n
//   gemma    <start_of_turn>user\nHi<end_of_turn>\n<start_of_turn>model\n
struct BuiltIn {
  std::string_view name;
  std::string_view text;
};

constexpr BuiltIn kBuiltIns[] = {
    {"chatml",
     "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
     "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"},
    {"command-r",
     "{% for m in messages %}<|START_OF_TURN_TOKEN|>"
     "{% if m.role == 'system' %}<|SYSTEM_TOKEN|>"
     "{% elif m.role == 'user' %}<|USER_TOKEN|>"
     "{% else %}<|CHATBOT_TOKEN|>{% endif %}"
     "{{ m.content | trim }}<|END_OF_TURN_TOKEN|>{% endfor %}"
     "{% if add_generation_prompt %}<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>{% endif %}"},
    // The format has no system role: such a message goes in front of the next one.
    {"gemma",
     "{% set ns = namespace(before='') %}{% for m in messages %}"
     "{% if m.role == 'system' %}{% set ns.before = m.content | trim ~ '\\n\\n' %}"
     "{% else %}<start_of_turn>{{ 'model' if m.role == 'assistant' else 'user' }}\n"
     "{{ ns.before }}{{ m.content | trim }}<end_of_turn>\n{% set ns.before = '' %}{% endif %}"
     "{% endfor %}{% if add_generation_prompt %}<start_of_turn>model\n{% endif %}"},
    {"llama3",
     "{% for m in messages %}<|start_header_id|>{{ m.role }}<|end_header_id|>\n\n"
     "{{ m.content | trim }}<|eot_id|>{% endfor %}"
     "{% if add_generation_prompt %}<|start_header_id|>assistant<|end_header_id|>\n\n{% endif %}"},
    {"phi3",
     "{% for m in messages %}<|{{ m.role }}|>\n{{ m.content }}<|end|>\n{% endfor %}"
     "{% if add_generation_prompt %}<|assistant|>\n{% endif %}"},
    {"zephyr",
     "{% for m in messages %}<|{{ m.role }}|>\n{{ m.content }}{{ eos_token }}\n{% endfor %}"
     "{% if add_generation_prompt %}<|assistant|>\n{% endif %}"},
};

}  // namespace

std::string_view built_in_template(std::string_view name) {
  for (const BuiltIn& built_in : kBuiltIns) {
    if (built_in.name == name) return built_in.text;
  }
  return "";
}

std::string built_in_template_names() {
  std::string names;
  for (const BuiltIn& built_in : kBuiltIns)
    names.append(names.empty() ? "" : ", ").append(built_in.name);
  return names;
}

}  // namespace limpid
