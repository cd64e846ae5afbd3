#include "train/token_documents.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "base/philox.h"

namespace limpid {

void append_document(TokenDocuments& documents, std::string_view text, const Tokenizer& tokenizer) {
  documents.begins.push_back(documents.n_tokens());
  const std::vector<TokenId> ids = tokenizer.encode(text);
  documents.ids.insert(documents.ids.end(), ids.begin(), ids.end());
  const auto& eos = tokenizer.spec().eos;
  if (eos && (ids.empty() || ids.back() != *eos)) documents.ids.push_back(*eos);
}

TokenDocuments split_off(TokenDocuments& documents, double share) {
  const auto wanted = documents.n_tokens() -
                      static_cast<int64_t>(share * static_cast<double>(documents.n_tokens()));
  auto first = std::ranges::lower_bound(documents.begins, wanted);
  const bool cut = first == documents.begins.end() || first == documents.begins.begin();
  const int64_t at = cut ? wanted : *first;
  TokenDocuments held_out;
  held_out.ids.assign(documents.ids.begin() + at, documents.ids.end());
  if (cut) held_out.begins.push_back(0);
  for (; first != documents.begins.end(); ++first) held_out.begins.push_back(*first - at);
  if (!documents.learned.empty()) {
    held_out.learned.assign(documents.learned.begin() + at, documents.learned.end());
    documents.learned.resize(static_cast<size_t>(at));
  }
  documents.ids.resize(static_cast<size_t>(at));
  std::erase_if(documents.begins, [at](int64_t begin) { return begin >= at; });
  return held_out;
}

BatchSampler::BatchSampler(const TokenDocuments& documents, int64_t seq_len, uint64_t seed)
    : documents_(documents),
      seq_len_(seq_len),
      seed_(seed),
      n_windows_((documents.n_tokens() - 1) / seq_len) {
  LIMPID_CHECK(ArgumentError, n_windows_ > 0,
               "the data has {} tokens; a sequence of {} needs at least {}", documents.n_tokens(),
               seq_len, seq_len + 1);
}

// Fisher & Yates. The windows of an epoch begin at an offset of their own below seq_len; the last
// window is dropped when it would then pass the end.
void BatchSampler::shuffle(int64_t epoch) {
  epoch_ = epoch;
  auto random = [&, i = uint64_t{0}](uint64_t bound) mutable {
    const auto words =
        philox4x32({static_cast<uint32_t>(i), static_cast<uint32_t>(i >> 32U),
                    static_cast<uint32_t>(epoch), 0x7368'7566U},
                   {static_cast<uint32_t>(seed_), static_cast<uint32_t>(seed_ >> 32U)});
    ++i;
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
  for (int64_t i = 0; i < n_windows; ++i, ++position_) {
    if (position_ / n_windows_ != epoch_) shuffle(position_ / n_windows_);
    append(offset_ + order_[static_cast<size_t>(position_ % n_windows_)] * seq_len_, batch);
  }
  return batch;
}

void BatchSampler::append(int64_t begin, Batch& batch) const {
  const std::vector<int64_t>& begins = documents_.begins;
  auto next_document = std::ranges::upper_bound(begins, begin);
  int64_t length = 0;
  for (int64_t t = begin; t < begin + seq_len_; ++t) {
    const bool last = next_document != begins.end() && *next_document == t + 1;
    const auto next = static_cast<size_t>(t + 1);
    const bool learned = !last && (documents_.learned.empty() || documents_.learned[next] != 0);
    batch.token_ids.push_back(documents_.ids[static_cast<size_t>(t)]);
    batch.targets.push_back(learned ? documents_.ids[next] : Batch::kNoTarget);
    ++length;
    if (!last) continue;
    batch.lengths.push_back(length);
    length = 0;
    ++next_document;
  }
  if (length > 0) batch.lengths.push_back(length);
}

}  // namespace limpid
