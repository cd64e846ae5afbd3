#include "train/token_documents.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "base/philox.h"
#include "base/printable.h"
#include "base/utf8.h"

namespace limpid {
namespace {

void add(Batch& batch, const Batch& more) {
  batch.token_ids.insert(batch.token_ids.end(), more.token_ids.begin(), more.token_ids.end());
  batch.targets.insert(batch.targets.end(), more.targets.begin(), more.targets.end());
  batch.lengths.insert(batch.lengths.end(), more.lengths.begin(), more.lengths.end());
}

// The token that ends a document. A tokenizer's file alone may not say which one it is, so a name
// tells it.
std::optional<TokenId> document_end(const Tokenizer& tokenizer) {
  if (tokenizer.spec().eos) return tokenizer.spec().eos;
  for (const std::string_view name : {"<|endoftext|>", "<|end_of_text|>", "</s>"}) {
    for (const TokenId id : tokenizer.spec().stop_ids) {
      if (tokenizer.bytes_of(id, true) == name) return id;
    }
  }
  return std::nullopt;
}

bool can_lose_characters(const TokenizerSpec& spec) {
  return spec.kind == TokenizerKind::kByteLevelBpe && !spec.normalize_nfc;
}

}  // namespace

std::string lost_character(std::string_view text, const Tokenizer& tokenizer) {
  std::string lost;
  if (!can_lose_characters(tokenizer.spec())) return lost;
  unicode::for_each_character(text, [&](std::string_view character) {
    if (lost.empty() && tokenizer.decode(tokenizer.encode(character)).size() < character.size())
      lost = character;
  });
  return lost;
}

void append_document(TokenDocuments& documents, std::string_view text, const Tokenizer& tokenizer,
                     DocumentPart part) {
  const TokenizerSpec& spec = tokenizer.spec();
  std::vector<int32_t>& ids = documents.ids;
  const auto begin = ids.size();
  if (part.begins) documents.begins.push_back(documents.n_tokens());
  if (part.begins && spec.add_bos) ids.push_back(*spec.bos);
  const auto begin_of_text = ids.size();
  tokenizer.encode(text, {.add_special = false, .at_start = part.begins}, ids);
  if (can_lose_characters(spec) &&
      tokenizer.decode(std::span(ids).subspan(begin_of_text)).size() < text.size()) {
    const std::string lost = lost_character(text, tokenizer);  // "": white space of an added token
    LIMPID_CHECK(ArgumentError, lost.empty(),
                 "the tokenizer has no token for the character '{}': leave it out, or take another "
                 "tokenizer",
                 printable(lost));
  }
  const std::optional<TokenId> end = part.ends ? document_end(tokenizer) : std::nullopt;
  if (end && (ids.size() == begin || ids.back() != *end)) ids.push_back(*end);
}

DocumentView::DocumentView(TokenDocuments documents) {
  const auto shared = std::make_shared<const TokenDocuments>(std::move(documents));
  ids = shared->ids;
  begins = shared->begins;
  learned = shared->learned;
  owner = shared;
}

// Example: documents of 100 and 3 tokens, and a share of 0.2. The last document alone would be much
// less than the 20 tokens that are wanted, so the first one is cut.
DocumentView split_off(DocumentView& documents, double share) {
  const int64_t n = documents.n_tokens();
  const auto wanted = n - static_cast<int64_t>(share * static_cast<double>(n));
  const auto first = std::ranges::lower_bound(documents.begins, documents.origin + wanted);
  const bool cut = first == documents.begins.end() || first == documents.begins.begin() ||
                   2 * (documents.origin + n - *first) < n - wanted;
  const int64_t at = cut ? wanted : *first - documents.origin;
  DocumentView held_out = documents;
  held_out.origin += at;
  held_out.ids = documents.ids.subspan(static_cast<size_t>(at));
  held_out.begins = {first, documents.begins.end()};
  documents.ids = documents.ids.first(static_cast<size_t>(at));
  documents.begins = {documents.begins.begin(), first};
  if (!documents.learned.empty()) {
    held_out.learned = documents.learned.subspan(static_cast<size_t>(at));
    documents.learned = documents.learned.first(static_cast<size_t>(at));
  }
  return held_out;
}

void check_length(int64_t n_tokens, int64_t seq_len) {
  LIMPID_CHECK(ArgumentError, n_tokens > seq_len,
               "the data has {} tokens; a sequence of {} needs at least {}: take more data, or "
               "shorter sequences",
               n_tokens, seq_len, seq_len + 1);
}

BatchSampler::BatchSampler(DocumentView documents, int64_t seq_len, uint64_t seed)
    : documents_(std::move(documents)),
      seq_len_(seq_len),
      seed_(seed),
      n_windows_((documents_.n_tokens() - 1) / seq_len) {
  check_length(documents_.n_tokens(), seq_len);
}

// Draws the offset of the epoch's windows, so that a token does not always stand at the same place
// of a window, and their order (Fisher & Yates). Example: 10 tokens and seq_len 4. A window reads 4
// tokens and the one after them, its last target, so two windows fit: at 0 and 4, or at 1 and 5.
// The offset is at most the number of tokens that no window reaches, 1 in the example, so every
// epoch has the same number of windows.
void BatchSampler::shuffle(int64_t epoch) {
  epoch_ = epoch;
  constexpr uint64_t kShuffles = 0x7368'7566;  // apart from the streams of weights and dropout
  const uint64_t stream = kShuffles << 32U | static_cast<uint32_t>(epoch);
  auto random = [&, i = uint64_t{0}](uint64_t bound) mutable {
    const auto words = philox4x32(i++, stream, seed_);
    return ((uint64_t{words[0]} << 32U) ^ words[1]) % bound;
  };
  const int64_t room = documents_.n_tokens() - 1 - n_windows_ * seq_len_;
  offset_ = static_cast<int64_t>(random(static_cast<uint64_t>(room) + 1));
  order_.resize(static_cast<size_t>(n_windows_));
  std::iota(order_.begin(), order_.end(), 0);
  for (size_t n = order_.size(); n > 1; --n) std::swap(order_[n - 1], order_[random(n)]);
}

Batch BatchSampler::next(int64_t n_windows) {
  Batch batch;
  batch.first_window = position_;
  int64_t n_passed_over = 0;
  for (int64_t n = 0; n < n_windows; ++position_) {
    if (position_ / n_windows_ != epoch_) shuffle(position_ / n_windows_);
    const int64_t index = order_[static_cast<size_t>(position_ % n_windows_)];
    Batch window;
    if (append(offset_ + index * seq_len_, window)) {
      add(batch, window);
      n_passed_over = 0;
      ++n;
    } else {
      LIMPID_CHECK(ArgumentError, ++n_passed_over < 2 * n_windows_,
                   "no sequence of {} tokens in the data has a token to learn", seq_len_);
    }
  }
  return batch;
}

// Documents "a b" and "c d e" in one window of 4 tokens:
//   token_ids a b c d     targets b - d e     lengths 2 2
// The last token of a document predicts nothing: what follows is the beginning of another text. The
// second sequence does not attend to the first one.
bool BatchSampler::append(int64_t begin, Batch& batch) const {
  bool has_target = false;
  const std::span<const int64_t> begins = documents_.begins;
  auto next_document = std::ranges::upper_bound(begins, documents_.origin + begin);
  int64_t length = 0;
  for (int64_t t = begin; t < begin + seq_len_; ++t) {
    const bool last = next_document != begins.end() && *next_document == documents_.origin + t + 1;
    const auto next = static_cast<size_t>(t + 1);
    const bool learned = !last && (documents_.learned.empty() || documents_.learned[next] != 0);
    has_target = has_target || learned;
    batch.token_ids.push_back(documents_.ids[static_cast<size_t>(t)]);
    batch.targets.push_back(learned ? documents_.ids[next] : Batch::kNoTarget);
    ++length;
    if (!last) continue;
    batch.lengths.push_back(length);
    length = 0;
    // Documents without a token begin at the same place.
    while (next_document != begins.end() && *next_document == documents_.origin + t + 1)
      ++next_document;
  }
  if (length > 0) batch.lengths.push_back(length);
  return has_target;
}

}  // namespace limpid
