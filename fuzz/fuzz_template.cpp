// Chat templates: up to the first NUL the template, behind it the messages as JSON.
// Whatever they are: text, or an Error, within the limits.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "limpid/error.hpp"
#include "tokenizer/chat_template.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string input(reinterpret_cast<const char*>(data), size);
  const size_t end = std::min(input.find('\0'), input.size());
  limpid::TemplateInputs inputs;
  inputs.messages = nlohmann::ordered_json::array();
  if (end < input.size()) {
    auto messages = nlohmann::ordered_json::parse(input.substr(end + 1), nullptr, false);
    if (messages.is_array()) inputs.messages = std::move(messages);
  }
  if (inputs.messages.empty()) {
    inputs.messages = nlohmann::ordered_json::parse(
        R"([{"role": "user", "content": "Grüße"}, {"role": "assistant", "content": "ok"}])");
  }
  inputs.tools =
      nlohmann::ordered_json::parse(R"([{"name": "f", "parameters": {"x": [1, 2.5, null]}}])");
  inputs.bos_token = "<s>";
  inputs.now = 1730000000;
  limpid::TemplateLimits limits;
  limits.max_steps = 20000;
  limits.max_output_bytes = 1 << 20;
  limits.max_memory_bytes = 16 << 20;
  try {
    limpid::ChatTemplate(input.substr(0, end), limits).render(inputs);
  } catch (const limpid::Error&) {
  }
  return 0;
}
