#include "train/simple_tokenizers.h"

#include <set>
#include <string>

#include "base/check.h"
#include "base/utf8.h"
#include "tokenizer/byte_alphabet.h"

namespace limpid {
namespace {

using byte_alphabet::spelling_of;

void add_piece(TokenizerSpec& spec, std::string piece, TokenType type = TokenType::kNormal) {
  spec.pieces.push_back(std::move(piece));
  spec.types.push_back(type);
}

}  // namespace

TokenizerSpec byte_tokenizer() {
  TokenizerSpec spec;
  for (int byte = 0; byte < 256; ++byte)
    add_piece(spec, spelling_of(std::string(1, static_cast<char>(byte))));
  spec.eos = 256;
  spec.stop_ids = {256};
  add_piece(spec, "<|endoftext|>", TokenType::kControl);
  return spec;
}

TokenizerSpec character_tokenizer(std::string_view text) {
  LIMPID_CHECK(ArgumentError, unicode::is_valid(text), "the text is not UTF-8");
  LIMPID_CHECK(ArgumentError, !text.empty(), "the text has no characters to make tokens of");
  std::set<std::string_view> characters;  // UTF-8 sorts as code points do
  unicode::for_each_character(text,
                              [&](std::string_view character) { characters.insert(character); });
  // Beginnings of characters of several bytes, and the bytes that follow: what merges need. The
  // sign € is E2 82 AC: the pieces E2, 82, E2 82 and AC, and the merges "E2 82" and "E2 82" "AC".
  // Shorter merges come first, because a longer one needs their result.
  std::set<std::string_view> parts;
  std::vector<std::string> merges[3];  // of 2, 3 and 4 bytes, in this order
  std::set<std::string_view> merged;
  for (const std::string_view character : characters) {
    for (size_t n = 2; n <= character.size(); ++n) {
      const std::string_view left = character.substr(0, n - 1);
      const std::string_view right = character.substr(n - 1, 1);
      parts.insert(left);
      parts.insert(right);
      if (merged.insert(character.substr(0, n)).second)
        merges[n - 2].push_back(spelling_of(left) + " " + spelling_of(right));
    }
  }
  TokenizerSpec spec;
  for (const std::string_view character : characters) add_piece(spec, spelling_of(character));
  for (const std::string_view part : parts) {
    if (!characters.contains(part)) add_piece(spec, spelling_of(part));
  }
  for (const auto& of_length : merges)
    spec.merges.insert(spec.merges.end(), of_length.begin(), of_length.end());
  return spec;
}

}  // namespace limpid
