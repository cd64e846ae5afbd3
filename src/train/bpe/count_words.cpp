#include "train/bpe/count_words.h"

#include <algorithm>

#include "base/check.h"
#include "tokenizer/pre_tokenizer_scanners.h"

namespace limpid::bpe {
namespace {

// Whether every letter ends a piece of this pre-tokenizer, unless a letter, a mark or an apostrophe
// follows it. The other pre-tokenizers join letters with more kinds of characters.
bool ends_pieces_after_letters(PreTokenizer pre_tokenizer) {
  switch (pre_tokenizer) {
    case PreTokenizer::kGpt2:
    case PreTokenizer::kDigitsGpt2:
    case PreTokenizer::kCl100k:
    case PreTokenizer::kLlama3:
    case PreTokenizer::kQwen2:
    case PreTokenizer::kQwen35:
    case PreTokenizer::kSeedCoder:
    case PreTokenizer::kGpt4o:
    case PreTokenizer::kTekken:
      return true;
    default:
      return false;
  }
}

// Returns the first place from `p` on, after a letter, where a piece ends in every context, that
// is, whatever text precedes and follows; or `end`.
//
// Most places are not safe. Take GPT-2's expression and a division after the first space, written _
// here. The pieces of a__b are a, _, _b, and so are those of its parts a_ and _b together. But the
// pieces of a___b are a, __, _b, while those of its parts a_ and __b are a, _, _, _b.
//
// A place after a letter is safe if the next character is not a letter, a mark or an apostrophe:
// such a character never continues a piece that ends with a letter, a letter is never inside white
// space, and no expression looks further ahead than the character after a piece.
const char* end_of_word(const char* p, const char* end) {
  using namespace unicode;
  while (p < end && !unicode::begins_character(*p)) ++p;  // to the start of a character
  if (p == end) return end;
  Character c = character_at(p, end);
  while (p + c.size < end) {
    const char* const next = p + c.size;
    const Character d = character_at(next, end);
    if (c.is(kLetter) && !d.is(kLetter | kMark) && d.value != '\'') return next;
    p = next;
    c = d;
  }
  return end;
}

const char* end_of_line(const char* p, const char* end) {
  const char* const found = std::find(p, end, '\n');
  return found == end ? end : found + 1;
}

void count_part(std::string_view part, const CountOptions& options, WordCounts& counts) {
  const auto count = [&](const char* p, size_t size) { counts.add({p, size}); };
  const char* p = part.data();
  const char* const end = p + part.size();
  while (p < end) {
    const char* const stop = options.each_line ? end_of_line(p, end) : end;
    pre_tokenizer_scanners::split(options.pre_tokenizer, p, stop, count);
    p = stop;
  }
}

[[noreturn]] void fail_utf8(const TrainingText& text) {
  const char* const begin = text.bytes.data();
  const char* const end = begin + text.bytes.size();
  const char* const p = unicode::valid_end(begin, end);
  throw FormatError(text.name, static_cast<uint64_t>(p - begin), "text",
                    fmt::format("the byte 0x{:02x} is not part of valid UTF-8",
                                p < end ? static_cast<uint8_t>(*p) : 0));
}

}  // namespace

std::vector<std::string_view> divide_text(std::string_view text, const CountOptions& options) {
  std::vector<std::string_view> parts;
  const char* const end = text.data() + text.size();
  for (const char* p = text.data(); p < end;) {
    const char* stop = end;
    if (static_cast<size_t>(end - p) > options.part_bytes) {
      const char* const from = p + options.part_bytes;
      if (options.each_line) {
        stop = end_of_line(from, end);
      } else if (ends_pieces_after_letters(options.pre_tokenizer)) {
        stop = end_of_word(from, end);
      }
    }
    parts.emplace_back(p, static_cast<size_t>(stop - p));
    p = stop;
  }
  return parts;
}

WordCounts count_words(std::span<const TrainingText> texts, const CountOptions& options) {
  std::vector<std::string_view> parts;
  std::vector<const TrainingText*> text_of;  // each part
  for (const TrainingText& text : texts) {
    for (const std::string_view part : divide_text(text.bytes, options)) parts.push_back(part);
    text_of.resize(parts.size(), &text);
  }
  ThreadPool pool(options.n_threads);
  std::vector<WordCounts> counted(static_cast<size_t>(pool.size()));
  for_each_piece(parts, pool, "counting words", options.progress, [&](size_t i, int thread) {
    if (!unicode::is_valid(parts[i])) fail_utf8(*text_of[i]);
    count_part(parts[i], options, counted[static_cast<size_t>(thread)]);
  });
  WordCounts all = std::move(counted.front());
  for (size_t i = 1; i < counted.size(); ++i) all.add_all(counted[i]);
  return all;
}

}  // namespace limpid::bpe
