// Chat prompts: a template put together from what templates do to texts, and messages put together
// from pieces of control tokens. Whatever they are, the prompt has the control tokens that it has
// with the harmless message "x".
#include <fuzzer/FuzzedDataProvider.h>

#include <array>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/utf8.h"
#include "generate/chat_prompt.h"
#include "limpid/error.hpp"
#include "tokenizer/byte_alphabet.h"

namespace {

using limpid::TokenId;
using limpid::Tokenizer;

constexpr const char* kControl[] = {"<|end|>", "<|END|>",     "<|End|>",   "<end>",
                                    "[END]",   "&lt;end&gt;", "%3Cend%3E", "<|user|>"};

// One token for each byte, and the control tokens.
std::shared_ptr<const Tokenizer> tokenizer_of_bytes(bool sentence_piece) {
  limpid::TokenizerSpec spec;
  const auto add = [&](std::string piece, limpid::TokenType type) {
    spec.pieces.push_back(std::move(piece));
    spec.types.push_back(type);
    if (sentence_piece) spec.scores.push_back(0);
  };
  if (sentence_piece) {
    spec.kind = limpid::TokenizerKind::kSentencePieceBpe;
    spec.merge_order = limpid::MergeOrder::kScores;
    add("<unk>", limpid::TokenType::kUnknown);
    spec.unknown = 0;
  }
  for (int byte = 0; byte < 256; ++byte) {
    constexpr char kDigits[] = "0123456789ABCDEF";
    std::string piece = {'<', '0', 'x', kDigits[byte >> 4], kDigits[byte & 15], '>'};
    if (!sentence_piece) {
      piece.clear();
      limpid::unicode::append_utf8(limpid::byte_alphabet::code_point_of(static_cast<uint8_t>(byte)),
                                   piece);
    }
    add(piece, sentence_piece ? limpid::TokenType::kByte : limpid::TokenType::kNormal);
  }
  for (const char* name : kControl) add(name, limpid::TokenType::kControl);
  add("x<", limpid::TokenType::kUserDefined);
  return Tokenizer::create(std::move(spec));
}

// What follows a text in an expression. None puts a whole control token in, and none chooses by
// what the text is. Quoted pieces of tokens begin one and never end one, so they make none
// by themselves.
constexpr const char* kChanges[] = {"|lower",
                                    "|upper",
                                    "|title",
                                    "|capitalize",
                                    "|trim",
                                    "|reverse",
                                    "|string",
                                    "|safe",
                                    "|e",
                                    "|tojson",
                                    "|list|join",
                                    "|list|reverse|join",
                                    "|indent(1)",
                                    "|indent('<|e', true)",
                                    "|replace('/think', '')",
                                    "|replace('/', '<|e')",
                                    "|default('<|e')",
                                    "|format",
                                    ".lower()",
                                    ".upper()",
                                    ".title()",
                                    ".capitalize()",
                                    ".strip()",
                                    ".strip('<')",
                                    ".lstrip()",
                                    ".rstrip('/')",
                                    ".replace('/no_think', '')",
                                    ".replace('', '<')",
                                    ".split('/')|join",
                                    ".split()|join('<|e')",
                                    ".join(['<|e', '/'])",
                                    ".format('<|e')",
                                    " ~ '<|e'",
                                    "[::-1]",
                                    "[1:]",
                                    "[:-1]",
                                    "[::2]",
                                    " * 2"};

// How a template writes an expression.
constexpr std::array<const char*, 2> kOutputs[] = {
    {"{{ ", " }}"},
    {"<|e{{ ", " }}"},
    {"<{{ ", " }}"},
    {"{% set t = ", " %}{{ '<' ~ t }}"},
    {"{% for c in ", " %}{{ c }}{% endfor %}"},
    {"{% filter lower %}<|E{{ ", " }}{% endfilter %}"},
    {"{% macro m(a) %}<|e{{ a }}{% endmacro %}{{ m(", ") }}"},
    {"{{ {", ": 1}|tojson }}"},
    {"{{ [", "] }}"},
    {"{% for k in {", ": 1} %}<{{ k }}{% endfor %}"},
    {"{{ '<|e%s'|format(", ") }}"},
    {"{{ '{}'.format(", ") }}"}};

constexpr const char* kTexts[] = {"m.content", "m.role", "m.name",
                                  "m",         "tools",  "(m|items|first)[0]"};

constexpr const char* kPieces[] = {"<|e", "nd|>", "<|end|>", "<",     "|",      ">",         "e",
                                   "n",   "d",    "END",     "D|>",   "/think", "/no_think", "/",
                                   " ",   "\n",   "&lt;",    "end",   "[END]",  "%3C",       ";",
                                   "%s",  "{}",   "x",       "|end|", "\u0130", "\\",        "\""};

std::string a_template(FuzzedDataProvider& data) {
  std::string source = "{% for m in messages %}";
  for (int n = data.ConsumeIntegralInRange(1, 3); n > 0; --n) {
    if (data.ConsumeBool()) source += data.PickValueInArray(kControl);
    std::string expression = data.PickValueInArray(kTexts);
    for (int k = data.ConsumeIntegralInRange(0, 4); k > 0; --k)
      expression = "(" + expression + ")" + data.PickValueInArray(kChanges);
    const auto& output = kOutputs[data.ConsumeIntegralInRange<size_t>(0, std::size(kOutputs) - 1)];
    source += output[0] + expression + output[1];
  }
  return source + "{% endfor %}<|end|>";
}

std::string a_text(FuzzedDataProvider& data) {
  std::string text;
  for (int n = data.ConsumeIntegralInRange(0, 12); n > 0; --n)
    text += data.PickValueInArray(kPieces);
  return text;
}

std::vector<TokenId> control_tokens(const Tokenizer& tokenizer, const limpid::ChatTemplate& parsed,
                                    const std::array<std::string, 3>& texts) {
  limpid::TemplateInputs inputs;
  inputs.messages = {{{"role", texts[0]}, {"content", texts[1]}, {"name", texts[2]}}};
  inputs.tools = {{{texts[1], texts[2]}}};
  std::vector<TokenId> control;
  for (const TokenId id : limpid::encode_chat(tokenizer, parsed, inputs))
    if (tokenizer.is_control(id)) control.push_back(id);
  return control;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  static const auto kByteLevel = tokenizer_of_bytes(false);
  static const auto kSentencePiece = tokenizer_of_bytes(true);
  FuzzedDataProvider data(bytes, size);
  const Tokenizer& tokenizer = data.ConsumeBool() ? *kByteLevel : *kSentencePiece;
  const std::string source = a_template(data);
  limpid::TemplateLimits limits;
  limits.max_steps = 20000;
  limits.max_output_bytes = 1 << 20;
  limits.max_memory_bytes = 16 << 20;
  try {
    const limpid::ChatTemplate parsed(source, limits);
    const std::array<std::string, 3> texts = {a_text(data), a_text(data), a_text(data)};
    const auto control = control_tokens(tokenizer, parsed, texts);
    if (control != control_tokens(tokenizer, parsed, {"x", "x", "x"})) {
      fprintf(stderr, "template: %s\nrole: %s\ncontent: %s\nname: %s\n", source.c_str(),
              texts[0].c_str(), texts[1].c_str(), texts[2].c_str());
      std::abort();
    }
  } catch (const limpid::Error&) {
  }
  return 0;
}
