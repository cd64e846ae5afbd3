#include "generate/chat_prompt.h"

#include <string>

#include "tokenizer/special_matcher.h"

namespace limpid {
namespace {

// The renderer traces each byte to its origin: the template or the inputs. A match of a control
// token counts only when all of its bytes come from the template. So neither a user's text, nor
// what the template makes of it, can begin, end or be a control token. The text between two control
// tokens is encoded with no control token allowed.
std::vector<TokenId> encode_rendered(const Tokenizer& tokenizer, jinja::TracedView rendered) {
  std::vector<bool> by_template;  // for each byte: whether the template wrote it
  rendered.for_each_run([&](std::string_view run, jinja::Origin origin) {
    by_template.insert(by_template.end(), run.size(), origin == jinja::Origin::kTemplate);
  });
  const std::string_view text = rendered.bytes();
  std::vector<TokenId> ids;
  EncodeOptions plain{.add_special = false};
  size_t from = 0;
  const auto encode_until = [&](size_t end) {
    plain.at_start = ids.empty();
    tokenizer.encode(text.substr(from, end - from), plain, ids);
  };
  SpecialTokens all;
  all.allow = SpecialTokens::Allow::kAll;
  SpecialMatcher::Work work;
  tokenizer.special_tokens().for_each_match(
      text, all, [&](size_t place) { return by_template[place]; }, work,
      [&](TokenId id, size_t begin, size_t end) {
        if (!tokenizer.is_control(id)) return;  // encode() finds user-defined tokens itself
        encode_until(begin);
        ids.push_back(id);
        from = end;
      });
  encode_until(text.size());
  return ids;
}

}  // namespace

void add_bos_and_eos(TemplateInputs& inputs, const TokenizerSpec& spec) {
  const auto piece_of = [&](const std::optional<TokenId>& id) {
    return id ? spec.pieces[static_cast<size_t>(*id)] : std::string();
  };
  inputs.bos_token = piece_of(spec.bos);
  inputs.eos_token = piece_of(spec.eos);
}

std::vector<TokenId> encode_chat(const Tokenizer& tokenizer, const ChatTemplate& chat_template,
                                 TemplateInputs inputs, std::string_view begun) {
  add_bos_and_eos(inputs, tokenizer.spec());
  jinja::TracedText text = chat_template.render_traced(inputs);
  text.append(begun, jinja::Origin::kData);
  return encode_rendered(tokenizer, text);
}

}  // namespace limpid
