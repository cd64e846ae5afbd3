#include "train/bpe/bpe_trainer.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <unordered_map>
#include <utility>

#include "base/check.h"
#include "base/printable.h"
#include "tokenizer/byte_alphabet.h"
#include "train/bpe/merge_learner.h"

namespace limpid {
namespace {

constexpr int64_t kMaxVocabSize = int64_t{1} << 24;

// The vocabulary while it grows.
class Vocabulary {
 public:
  // Returns the id of the piece, which gets the next one if it is new. A merge can spell a special
  // token: the result is that token then.
  uint32_t add(std::string piece) {
    const auto [found, is_new] = ids_.try_emplace(piece, static_cast<uint32_t>(pieces_.size()));
    if (is_new) pieces_.push_back(std::move(piece));
    return found->second;
  }
  uint32_t join(bpe::TokenPair pair) { return add(pieces_[pair.left] + pieces_[pair.right]); }
  int64_t size() const { return static_cast<int64_t>(pieces_.size()); }
  std::vector<std::string> take() && { return std::move(pieces_); }

 private:
  std::vector<std::string> pieces_;
  std::unordered_map<std::string, uint32_t> ids_;
};

void add_special_tokens(const std::vector<std::string>& tokens, Vocabulary& vocabulary) {
  for (const std::string& token : tokens) {
    LIMPID_CHECK(ArgumentError, !token.empty(), "a special token is empty");
    LIMPID_CHECK(ArgumentError, is_clean_utf8(token), "the special token '{}' is not UTF-8",
                 printable(token));
    const int64_t n_before = vocabulary.size();
    vocabulary.add(token);
    LIMPID_CHECK(ArgumentError, vocabulary.size() > n_before,
                 "the special token '{}' is listed twice", printable(token));
  }
}

// Adds all bytes in the order of their code points. Returns the id of each byte.
std::array<uint32_t, 256> add_bytes(Vocabulary& vocabulary) {
  std::array<uint8_t, 256> order{};
  std::iota(order.begin(), order.end(), uint8_t{0});
  std::ranges::sort(order, {}, byte_alphabet::code_point_of);
  std::array<uint32_t, 256> ids{};
  for (const uint8_t byte : order)
    ids[byte] = vocabulary.add(byte_alphabet::spelling_of(std::string(1, static_cast<char>(byte))));
  return ids;
}

void check_texts(std::span<const TrainingText> texts) {
  LIMPID_CHECK(ArgumentError, !texts.empty(), "no text to learn from");
  const bool all_empty =
      std::ranges::all_of(texts, [](const TrainingText& text) { return text.bytes.empty(); });
  LIMPID_CHECK(ArgumentError, !all_empty, "{} is empty{}: nothing to learn from",
               texts.front().name, texts.size() == 1 ? "" : ", and so are all other texts");
}

// Counts the words and lays them out. Only the learner is kept: the counts of a large text take
// much memory.
bpe::MergeLearner learner_of(std::span<const TrainingText> texts, const BpeTrainingOptions& options,
                             const std::array<uint32_t, 256>& byte_ids, int64_t n_merges,
                             TrainedBpe& trained) {
  const bpe::WordCounts words = bpe::count_words(texts, options);
  trained.n_words = words.n_words();
  trained.n_different_words = words.size();
  return {words, byte_ids, options.min_frequency, n_merges};
}

void learn_merges(const BpeTrainingOptions& options, bpe::MergeLearner& learner,
                  Vocabulary& vocabulary, TrainedBpe& trained) {
  constexpr size_t kMergesPerReport = 64;
  while (vocabulary.size() < options.vocab_size) {
    const bool reports = options.merging && trained.merges.size() % kMergesPerReport == 0;
    LIMPID_CHECK(ResourceError,
                 !reports || options.merging(static_cast<uint64_t>(vocabulary.size()),
                                             static_cast<uint64_t>(options.vocab_size)),
                 "merging was cancelled");
    const auto found = learner.next();
    if (!found) return;
    learner.merge(found->pair, vocabulary.join(found->pair));
    trained.merges.push_back(found->pair);
    trained.last_count = found->count;
  }
}

}  // namespace

TrainedBpe train_bpe(std::span<const TrainingText> texts, const BpeTrainingOptions& options) {
  LIMPID_CHECK(ArgumentError, options.vocab_size <= kMaxVocabSize,
               "a vocabulary of {} tokens is too large; at most {} are supported",
               options.vocab_size, kMaxVocabSize);
  Vocabulary vocabulary;
  add_special_tokens(options.special_tokens, vocabulary);
  const std::array<uint32_t, 256> byte_ids = add_bytes(vocabulary);
  LIMPID_CHECK(ArgumentError, vocabulary.size() <= options.vocab_size,
               "a vocabulary of {} tokens is too small: the bytes{} need {}", options.vocab_size,
               options.special_tokens.empty() ? "" : " and the special tokens", vocabulary.size());
  check_texts(texts);

  TrainedBpe trained;
  trained.n_special = options.special_tokens.size();
  trained.pre_tokenizer = options.pre_tokenizer;
  for (const TrainingText& text : texts) trained.n_bytes += text.bytes.size();
  bpe::MergeLearner learner =
      learner_of(texts, options, byte_ids, options.vocab_size - vocabulary.size(), trained);
  learn_merges(options, learner, vocabulary, trained);
  trained.pieces = std::move(vocabulary).take();
  return trained;
}

TokenizerSpec tokenizer_spec(const TrainedBpe& trained) {
  TokenizerSpec spec;
  spec.kind = TokenizerKind::kByteLevelBpe;
  spec.pre_tokenizer = trained.pre_tokenizer;
  spec.pieces = trained.pieces;
  spec.types.assign(trained.pieces.size(), TokenType::kNormal);
  std::fill_n(spec.types.begin(), trained.n_special, TokenType::kControl);
  const std::span<const std::string> special = std::span(trained.pieces).first(trained.n_special);
  for (const bpe::TokenPair& merge : trained.merges) {
    const std::string& left = trained.pieces[merge.left];
    const std::string& right = trained.pieces[merge.right];
    if (std::ranges::find(special, left + right) == special.end())
      spec.merges.push_back(fmt::format("{} {}", left, right));
  }
  return spec;
}

}  // namespace limpid
