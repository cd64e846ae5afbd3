// Cuts texts into words with a pre-tokenizer and counts the words, on several threads.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/pre_tokenizer.h"
#include "train/bpe/word_counts.h"
#include "train/text_pieces.h"

namespace limpid {

// A text to learn from.
struct TrainingText {
  std::string name;                     // the file, for messages
  std::string_view bytes;               // UTF-8
  std::shared_ptr<const void> owner{};  // of the bytes; null: the caller
};

namespace bpe {

struct CountOptions {
  PreTokenizer pre_tokenizer = PreTokenizer::kGpt2;  // one that has a scanner
  bool each_line = false;       // each line, with its line break, is a text of its own
  int n_threads = 0;            // 0: one per core
  size_t part_bytes = 1 << 20;  // the least size of the parts into which texts are divided
  ByteProgress progress = {};
};

// Returns the same counts for any number of threads and any size of the parts. Throws FormatError,
// with the offset, for text that is not UTF-8, and ResourceError if `progress` cancels.
WordCounts count_words(std::span<const TrainingText> texts, const CountOptions& options);

// Divides a text into parts of at least `part_bytes` bytes, the last one excepted. The words of the
// parts, one part after another, are the words of the whole text. There may be one part only.
std::vector<std::string_view> divide_text(std::string_view text, const CountOptions& options);

}  // namespace bpe
}  // namespace limpid
