// Tokenized documents, and the batches that are drawn from them.
#pragma once

#include <cstdint>
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

// Appends one document: its tokens, with the tokenizer's beginning and end of a text where it has
// them, as in the model's training.
void append_document(TokenDocuments& documents, std::string_view text, const Tokenizer& tokenizer);

// The last documents, about `share` of the tokens, as held-out data; `documents` keeps the others.
// A single document is cut.
TokenDocuments split_off(TokenDocuments& documents, double share);

// Draws windows of seq_len tokens. In an epoch each window comes once, in an order that a seed
// shuffles; the windows of each epoch begin elsewhere. A window that spans several documents
// becomes several sequences. The order depends on the seed and the position only, so the position
// is all that a checkpoint needs to keep.
class BatchSampler {
 public:
  // `documents` must outlive the sampler. Throws ArgumentError when they have fewer than seq_len +
  // 1 tokens.
  BatchSampler(const TokenDocuments& documents, int64_t seq_len, uint64_t seed);

  // Windows drawn so far.
  int64_t position() const { return position_; }
  void set_position(int64_t position) { position_ = position; }
  int64_t windows_per_epoch() const { return n_windows_; }

  // The next `n_windows` windows.
  Batch next(int64_t n_windows);
  // Window `index` of an epoch without shuffling, for evaluation.
  void append_window(int64_t index, Batch& batch) const { append(index * seq_len_, batch); }

 private:
  void shuffle(int64_t epoch);
  void append(int64_t begin, Batch& batch) const;

  const TokenDocuments& documents_;
  int64_t seq_len_;
  uint64_t seed_;
  int64_t n_windows_;
  int64_t position_ = 0;
  int64_t epoch_ = -1;  // that `order_` and `offset_` are of
  int64_t offset_ = 0;  // of the epoch's first window
  std::vector<int32_t> order_;
};

}  // namespace limpid
