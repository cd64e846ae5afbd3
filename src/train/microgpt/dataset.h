// The documents that a model learns from, one per line. Each character is a token.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "train/microgpt/python_random.h"

namespace limpid::microgpt {

using Token = int32_t;

// The distinct characters of the data in Unicode order, and one additional token, BOS, which is put
// before the first character of a document and after its last. Example: with the characters a, b, c
// and BOS = 3, "cab" is the tokens 3 2 0 1 3.
class Alphabet {
 public:
  Alphabet() = default;
  // `characters` are code points in ascending order.
  explicit Alphabet(std::u32string characters) : characters_(std::move(characters)) {}

  Token bos() const { return static_cast<Token>(characters_.size()); }
  int64_t vocab_size() const { return static_cast<int64_t>(characters_.size()) + 1; }
  const std::u32string& characters() const { return characters_; }

  // Writes BOS, the characters, BOS. Throws ArgumentError for a character that is not in the
  // alphabet.
  void encode(std::u32string_view document, std::vector<Token>& tokens) const;
  // Returns the UTF-8 of one character; "" for BOS.
  std::string decode(Token token) const;

 private:
  std::u32string characters_;
};

// The documents of a file. The trainer shuffles them once and then reads them in order.
class Dataset {
 public:
  // Reads lines of UTF-8 `text`, removes white space around them, and skips empty lines. `name` is
  // the file for messages. Throws FormatError for text that is not UTF-8 or has a zero byte, for no
  // document, and for too many.
  static Dataset parse(std::string_view text, const std::string& name);

  const std::vector<std::u32string>& documents() const { return documents_; }
  // The alphabet of the documents, and of '.' if `with_period`.
  Alphabet alphabet(bool with_period) const;
  void shuffle(PythonRandom& random) { random.shuffle(documents_); }

 private:
  std::vector<std::u32string> documents_;
};

// data/names.txt: 32,033 names, the data of the original programs (makemore, MIT).
std::string_view names_text();

// Throws FormatError, naming the file `name`, for text that is not UTF-8.
std::u32string from_utf8(std::string_view text, const std::string& name);
std::string to_utf8(std::u32string_view text);

}  // namespace limpid::microgpt
