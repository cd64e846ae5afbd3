// Tokenized documents, and the batches that are drawn from them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "tokenizer/tokenizer.h"
#include "train/batch.h"

namespace limpid {

// Documents one after another.
struct TokenDocuments {
  std::vector<int32_t> ids;
  std::vector<int64_t> begins;  // of each document in `ids`, ascending; the first one is 0
  // Empty, or for each token whether predicting it is learned: of dialogues, the answers only.
  std::vector<uint8_t> learned;

  int64_t n_tokens() const { return static_cast<int64_t>(ids.size()); }
};

// Which part of a document a text is: the first, the last, or both.
struct DocumentPart {
  bool begins = true;
  bool ends = true;
};
// Appends the tokens of one document, with the tokenizer's tokens for the beginning and the end of
// a text, if the tokenizer has them. A long document may come in several parts. Throws
// ArgumentError for a lost_character().
void append_document(TokenDocuments& documents, std::string_view text, const Tokenizer& tokenizer,
                     DocumentPart part = {});

// The first character of `text` for which the tokenizer has no token, or "". Only byte-level BPE
// that keeps a text as it is can say so: a vocabulary that was made of other characters.
std::string lost_character(std::string_view text, const Tokenizer& tokenizer);

// A view of documents that are in memory or in a mapped file. Copies share the documents.
struct DocumentView {
  DocumentView() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): a view of documents that nobody else changes
  DocumentView(TokenDocuments documents);

  std::span<const int32_t> ids;
  std::span<const int64_t> begins;  // document i begins at ids[begins[i] - origin]
  std::span<const uint8_t> learned;
  int64_t origin = 0;
  std::shared_ptr<const void> owner;

  int64_t n_tokens() const { return std::ssize(ids); }
  uint64_t n_bytes() const { return ids.size_bytes() + begins.size_bytes() + learned.size_bytes(); }
};

// Returns the last documents, about `share` of the tokens, as held-out data; `documents` keeps the
// others. A document is cut if the documents after it have less than half of the share.
DocumentView split_off(DocumentView& documents, double share);

// Throws ArgumentError unless n_tokens are enough for a sequence and its last target.
void check_length(int64_t n_tokens, int64_t seq_len);

// Draws windows of seq_len tokens. In an epoch each window comes once, in an order that a seed
// shuffles; the windows of each epoch begin elsewhere. A window that spans several documents
// becomes several sequences. The order depends on the seed and the position only, so the position
// is all that a checkpoint needs to keep.
class BatchSampler {
 public:
  // Throws as check_length does.
  BatchSampler(DocumentView documents, int64_t seq_len, uint64_t seed);

  // Returns how many windows were drawn or passed over so far.
  int64_t position() const { return position_; }
  void set_position(int64_t position) { position_ = position; }
  int64_t windows_per_epoch() const { return n_windows_; }

  // Returns the next `n_windows` windows; those without a token to learn are passed over. Throws
  // ArgumentError when the data has only such windows.
  Batch next(int64_t n_windows);
  // Appends window `index` of an epoch without shuffling, for evaluation.
  void append_window(int64_t index, Batch& batch) const { append(index * seq_len_, batch); }

 private:
  void shuffle(int64_t epoch);
  // Returns whether the window has a token to learn.
  bool append(int64_t begin, Batch& batch) const;

  DocumentView documents_;
  int64_t seq_len_;
  uint64_t seed_;
  int64_t n_windows_;
  int64_t position_ = 0;
  int64_t epoch_ = -1;  // that `order_` and `offset_` are of
  int64_t offset_ = 0;  // of the epoch's first window
  std::vector<int32_t> order_;
};

}  // namespace limpid
