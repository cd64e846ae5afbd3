#include "tokenizer/text_normalizer.h"

#include "tokenizer/normalize.h"

namespace limpid {

// NFC applies to byte-level BPE; the rest to SentencePiece BPE.
std::string_view normalize_text(const TokenizerSpec& spec, std::string_view text,
                                std::string& buffer) {
  constexpr std::string_view kSpaceMark = "\xE2\x96\x81";
  if (spec.kind == TokenizerKind::kByteLevelBpe) {
    if (spec.normalize_nfc && unicode::normalize_nfc(text, buffer)) return buffer;
    return text;
  }
  if (spec.space_prefix != SpacePrefix::kEveryPart && spec.space_prefix != SpacePrefix::kNone)
    return text;
  buffer.clear();
  if (text.empty()) return buffer;
  if (spec.space_prefix == SpacePrefix::kEveryPart) buffer = kSpaceMark;
  for (const char c : text) {
    if (c == ' ') {
      buffer += kSpaceMark;
    } else {
      buffer.push_back(c);
    }
  }
  return buffer;
}

}  // namespace limpid
