// The documents a model learns from, one a line, as tokens: a token is a character.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "train/microgpt/python_random.h"

namespace limpid::microgpt {

using Token = int32_t;

// Every distinct character of the data, in the order of Unicode, and one token more: BOS, which
// stands before the first character of a document and behind its last.
class Alphabet {
 public:
  Alphabet() = default;
  // Code points in ascending order.
  explicit Alphabet(std::u32string characters) : characters_(std::move(characters)) {}

  Token bos() const { return static_cast<Token>(characters_.size()); }
  int64_t vocab_size() const { return static_cast<int64_t>(characters_.size()) + 1; }
  const std::u32string& characters() const { return characters_; }

  // BOS, the characters, BOS. Throws ArgumentError for a character that the alphabet lacks.
  void encode(std::u32string_view document, std::vector<Token>& tokens) const;
  // UTF-8 of one character; "" of BOS.
  std::string decode(Token token) const;

 private:
  std::u32string characters_;
};

class Dataset {
 public:
  // Lines of UTF-8 `text`, white space around them removed, empty lines left out. `name` is the
  // file that a FormatError names: text that is not UTF-8, no document at all, too many.
  static Dataset parse(std::string_view text, const std::string& name);

  const std::vector<std::u32string>& documents() const { return documents_; }
  // With '.' added when `with_period`.
  Alphabet alphabet(bool with_period) const;
  void shuffle(PythonRandom& random) { random.shuffle(documents_); }

 private:
  std::vector<std::u32string> documents_;
};

// data/names.txt, 32,033 names: what the originals learn from (makemore, MIT).
std::string_view names_text();

// Throws FormatError, naming the file `name`, for what is no UTF-8.
std::u32string from_utf8(std::string_view text, const std::string& name);
std::string to_utf8(std::u32string_view text);

}  // namespace limpid::microgpt
