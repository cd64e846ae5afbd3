#include "generate/chat_prompt.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "base/check.h"
#include "tokenizer/special_matcher.h"

// How data are told from template: before rendering, every spelling of a control token inside a
// string of the data is broken by a mark (a Unicode noncharacter that occurs nowhere in them) after
// its first character, so the rendered text matches control tokens only where the template wrote
// them. The mark is taken out of the stretches between them, which are then encoded with no control
// token allowed. Also broken is the beginning of a spelling at the end of a string, as a template
// may put two strings side by side. Marks inside a spelling are never at the end of trimmed text,
// and templates compare contents with control tokens only to find out what a user must not be able
// to fake, so what a template does stays the same.

namespace limpid {
namespace {

using Json = nlohmann::ordered_json;

class ControlSpellings {
 public:
  explicit ControlSpellings(const Tokenizer& tokenizer) {
    const auto& pieces = tokenizer.spec().pieces;
    for (size_t i = 0; i < pieces.size(); ++i) {
      const auto id = static_cast<TokenId>(i);
      if (!pieces[i].empty() && tokenizer.is_control(id))
        by_first_byte_[byte(pieces[i][0])].push_back(pieces[i]);
    }
  }

  // `text` with `mark` inside every spelling, and inside the beginning of one at the end.
  std::string broken(const std::string& text, std::string_view mark) const {
    std::string out;
    for (size_t at = 0; at < text.size();) {
      const bool hit = begins_spelling(std::string_view(text).substr(at));
      do {
        out += text[at++];
      } while (at < text.size() && (byte(text[at]) & 0xC0U) == 0x80U);
      if (hit) out += mark;
    }
    return out;
  }

 private:
  static unsigned char byte(char c) { return static_cast<unsigned char>(c); }

  bool begins_spelling(std::string_view rest) const {
    const auto& spellings = by_first_byte_[byte(rest.front())];
    return std::any_of(spellings.begin(), spellings.end(), [rest](const std::string& spelling) {
      return rest.starts_with(spelling) || std::string_view(spelling).starts_with(rest);
    });
  }

  std::array<std::vector<std::string>, 256> by_first_byte_;
};

void break_spellings(Json& json, const ControlSpellings& spellings, std::string_view mark) {
  if (json.is_string()) {
    json = spellings.broken(json.get_ref<const std::string&>(), mark);
  } else if (json.is_array()) {
    for (Json& item : json) break_spellings(item, spellings, mark);
  } else if (json.is_object()) {
    Json copy = Json::object();
    for (auto& [key, value] : json.items()) {
      break_spellings(value, spellings, mark);
      copy[spellings.broken(key, mark)] = std::move(value);
    }
    json = std::move(copy);
  }
}

bool contains(const Json& json, std::string_view text) {
  if (json.is_string()) return json.get_ref<const std::string&>().find(text) != std::string::npos;
  if (!json.is_structured()) return false;
  for (const auto& [key, value] : json.items()) {
    if ((json.is_object() && key.find(text) != std::string::npos) || contains(value, text))
      return true;
  }
  return false;
}

// A noncharacter (U+FDD0 to U+FDEF) that neither the data nor the template contain.
std::string unused_mark(const TemplateInputs& inputs, const std::string& source) {
  for (int last = 0x90; last <= 0xAF; ++last) {
    std::string mark = {'\xEF', '\xB7', static_cast<char>(last)};
    if (source.find(mark) == std::string::npos && !contains(inputs.messages, mark) &&
        !contains(inputs.tools, mark) && !contains(inputs.extra, mark)) {
      return mark;
    }
  }
  throw ArgumentError(
      "[chat] the messages contain every Unicode noncharacter from U+FDD0 to U+FDEF; remove one");
}

void remove_all(std::string& text, std::string_view what) {
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at))
    text.erase(at, what.size());
}

// Encodes `rendered`, whose control tokens are meant as such, without the marks.
std::vector<TokenId> encode_marked(const Tokenizer& tokenizer, std::string_view rendered,
                                   std::string_view mark) {
  std::vector<TokenId> ids;
  std::string stretch;
  EncodeOptions plain;
  plain.add_special = false;
  const auto flush = [&] {
    remove_all(stretch, mark);
    plain.at_start = ids.empty();
    tokenizer.encode(stretch, plain, ids);
    stretch.clear();
  };
  SpecialTokens all;
  all.allow = SpecialTokens::Allow::kAll;
  SpecialMatcher(tokenizer.spec(), SpecialMatcher::Names::kAll)
      .partition(
          rendered, all, [&](std::string_view text) { stretch += text; },
          [&](TokenId id) {
            if (!tokenizer.is_control(id)) {  // a user-defined token: found again in the stretch
              stretch += tokenizer.spec().pieces[static_cast<size_t>(id)];
              return;
            }
            flush();
            ids.push_back(id);
          });
  flush();
  return ids;
}

std::string piece_of(const Tokenizer& tokenizer, const std::optional<TokenId>& id) {
  return id ? tokenizer.spec().pieces[static_cast<size_t>(*id)] : "";
}

}  // namespace

std::vector<TokenId> encode_chat(const Tokenizer& tokenizer, const ChatTemplate& chat_template,
                                 TemplateInputs inputs) {
  inputs.bos_token = piece_of(tokenizer, tokenizer.spec().bos);
  inputs.eos_token = piece_of(tokenizer, tokenizer.spec().eos);
  const ControlSpellings spellings(tokenizer);
  const std::string mark = unused_mark(inputs, chat_template.source());
  for (Json* data : {&inputs.messages, &inputs.tools, &inputs.extra})
    break_spellings(*data, spellings, mark);
  return encode_marked(tokenizer, chat_template.render(inputs), mark);
}

}  // namespace limpid
