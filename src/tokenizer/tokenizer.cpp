#include "tokenizer/tokenizer.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "base/thread_pool.h"
#include "tokenizer/byte_level_bpe.h"
#include "tokenizer/encode_scratch.h"
#include "tokenizer/meta_slices.h"
#include "tokenizer/normalize.h"
#include "tokenizer/sentence_piece_bpe.h"
#include "tokenizer/unicode.h"

namespace limpid {
namespace {

// Returns the byte of "<0xNN>" with two upper-case hexadecimal digits, or -1 for any other name.
int byte_of_name(std::string_view name) {
  int byte = -1;
  if (name.size() == 6) std::from_chars(name.data() + 3, name.data() + 5, byte, 16);
  return byte >= 0 && name == fmt::format("<0x{:02X}>", byte) ? byte : -1;
}

// Checks that all ids of the spec are in the vocabulary.
void check_ids(const TokenizerSpec& spec) {
  const auto in_range = [&](TokenId id) {
    return id >= 0 && static_cast<size_t>(id) < spec.pieces.size();
  };
  const auto check = [&](const std::optional<TokenId>& id, const char* name) {
    LIMPID_CHECK(ArgumentError, !id || in_range(*id),
                 "[tokenizer] {} is {}, outside a vocabulary of {} tokens", name, *id,
                 spec.pieces.size());
  };
  check(spec.bos, "bos");
  check(spec.eos, "eos");
  check(spec.eot, "eot");
  check(spec.eom, "eom");
  check(spec.unknown, "unknown");
  check(spec.pad, "pad");
  for (const TokenId id : spec.stop_ids) check(id, "a stop id");
  for (const AddedTokenRule& rule : spec.added_rules) check(rule.id, "a rule's id");
  LIMPID_CHECK(ArgumentError, !spec.add_bos || spec.bos, "[tokenizer] add_bos without a bos token");
  LIMPID_CHECK(ArgumentError, !spec.add_eos || spec.eos,
               "[tokenizer] add_eos without an eos token");
}

// Checks everything that both kinds of tokenizers rely on. The constructors check the rest.
void check_spec(const TokenizerSpec& spec) {
  LIMPID_CHECK(ArgumentError, !spec.pieces.empty(), "[tokenizer] the vocabulary is empty");
  LIMPID_CHECK(ArgumentError, spec.pieces.size() <= (size_t{1} << 30),
               "[tokenizer] {} tokens are too many", spec.pieces.size());
  LIMPID_CHECK(ArgumentError, spec.types.size() == spec.pieces.size(),
               "[tokenizer] {} token types for {} tokens", spec.types.size(), spec.pieces.size());
  if (spec.merge_order != MergeOrder::kList || spec.kind == TokenizerKind::kSentencePieceBpe) {
    constexpr size_t kLongest = 4096;  // the list of all ways to form a token is quadratic
    for (size_t i = 0; i < spec.pieces.size(); ++i) {
      LIMPID_CHECK(ArgumentError, spec.pieces[i].size() <= kLongest,
                   "[tokenizer] token {} is longer than {} bytes", i, kLongest);
    }
  }
  LIMPID_CHECK(
      ArgumentError,
      spec.merge_order != (spec.kind == TokenizerKind::kSentencePieceBpe ? MergeOrder::kRanks
                                                                         : MergeOrder::kScores),
      "[tokenizer] byte-level BPE does not merge by scores, nor SentencePiece BPE by ranks");
  if (spec.merge_order == MergeOrder::kScores) {
    LIMPID_CHECK(ArgumentError, spec.scores.size() == spec.pieces.size(),
                 "[tokenizer] {} scores for {} tokens", spec.scores.size(), spec.pieces.size());
    for (size_t i = 0; i < spec.scores.size(); ++i) {
      LIMPID_CHECK(ArgumentError, !std::isnan(spec.scores[i]),
                   "[tokenizer] scores[{}] is not a number", i);
    }
  }
  for (size_t i = 0; i < spec.types.size(); ++i) {
    LIMPID_CHECK(ArgumentError,
                 spec.types[i] != TokenType::kByte || byte_of_name(spec.pieces[i]) >= 0,
                 "[tokenizer] token {} is a byte token, but is not spelled <0x00> to <0xFF>", i);
  }
  check_ids(spec);
}

}  // namespace

std::shared_ptr<const Tokenizer> Tokenizer::create(TokenizerSpec spec) {
  check_spec(spec);
  if (spec.kind == TokenizerKind::kSentencePieceBpe)
    return std::make_shared<SentencePieceBpe>(std::move(spec));
  return std::make_shared<ByteLevelBpe>(std::move(spec));
}

Tokenizer::Tokenizer(TokenizerSpec spec)
    : spec_(std::move(spec)),
      ids_(spec_.pieces.size()),
      specials_(spec_, SpecialMatcher::Names::kPlain),
      normalized_specials_(spec_, SpecialMatcher::Names::kNormalized),
      all_specials_(spec_, SpecialMatcher::Names::kAll),
      scratch_(std::make_unique<ScratchPool>()) {
  for (size_t i = 0; i < spec_.pieces.size(); ++i)
    ids_.insert(spec_.pieces[i], static_cast<TokenId>(i));
  std::sort(spec_.stop_ids.begin(), spec_.stop_ids.end());
}

Tokenizer::~Tokenizer() = default;

void Tokenizer::set_token_bytes(std::string (*bytes_of_piece)(const std::string& piece)) {
  byte_ends_.reserve(spec_.pieces.size());
  std::vector<bool> is_normalized(spec_.pieces.size());
  for (const AddedTokenRule& rule : spec_.added_rules) {
    if (rule.normalized) is_normalized[static_cast<size_t>(rule.id)] = true;
  }
  std::string buffer;
  for (size_t i = 0; i < spec_.pieces.size(); ++i) {
    const std::string& piece = spec_.pieces[i];
    const TokenType type = spec_.types[i];
    // SentencePiece writes U+2581 for the spaces of user-defined symbols too.
    const bool has_marks =
        type == TokenType::kUserDefined && spec_.kind == TokenizerKind::kSentencePieceBpe;
    if (has_marks && is_normalized[i]) {
      // It was found by its normalized name, which begins with the space that was put before it.
      bytes_ += bytes_of_piece(std::string(normalize_text(spec_, piece, buffer)));
    } else if (type == TokenType::kNormal || has_marks) {
      bytes_ += bytes_of_piece(piece);
    } else if (type == TokenType::kByte) {
      bytes_ += static_cast<char>(byte_of_name(piece));
    } else if (type != TokenType::kUnused) {
      bytes_ += piece;
    }
    byte_ends_.push_back(bytes_.size());
  }
}

void Tokenizer::check_id(TokenId id) const {
  LIMPID_CHECK(ArgumentError, id >= 0 && id < vocab_size(),
               "[tokenizer] token id {} is outside a vocabulary of {} tokens", id, vocab_size());
}

void Tokenizer::encode(std::string_view text, const EncodeOptions& options,
                       std::vector<TokenId>& out) const {
  LIMPID_CHECK(
      ArgumentError, text.size() < static_cast<size_t>(std::numeric_limits<int32_t>::max()),
      "[tokenizer] a text of {} bytes is too long; encode it in parts below 2 GiB", text.size());
  if (options.special.refuse_others) refuse_specials(text, options.special);
  const ScratchPool::Lease scratch = scratch_->acquire();
  if (options.add_special && spec_.add_bos) out.push_back(*spec_.bos);
  if (spec_.meta_slices) {
    for_each_meta_slice(
        text, [&](std::string_view slice) { encode_slice(slice, options, *scratch, out); });
  } else {
    encode_slice(text, options, *scratch, out);
  }
  if (options.add_special && spec_.add_eos) out.push_back(*spec_.eos);
}

// Cuts the text at special tokens. The callbacks receive the stretches of text and the tokens in
// order.
void Tokenizer::encode_slice(std::string_view text, const EncodeOptions& options,
                             EncodeScratch& scratch, std::vector<TokenId>& out) const {
  specials_.partition(
      text, options.special, scratch.specials,
      [&](std::string_view part) {
        const bool at_start = options.at_start && part.data() == text.data();
        encode_stretch(part, at_start, options.special, scratch, out);
      },
      [&](TokenId id) { out.push_back(id); });
}

// Some added tokens are searched in the normalized text (AddedTokenRule::normalized). If there are
// any, the stretch is normalized first and cut a second time.
void Tokenizer::encode_stretch(std::string_view text, bool at_start, const SpecialTokens& special,
                               EncodeScratch& scratch, std::vector<TokenId>& out) const {
  if (!normalized_specials_.can_match(special))
    return encode_text(text, {.at_start = at_start}, scratch, out);
  const std::string_view normalized = normalize_text(spec_, text, scratch.normalized);
  normalized_specials_.partition(
      normalized, special, scratch.normalized_specials,
      [&](std::string_view part) {
        const bool is_first = at_start && part.data() == normalized.data();
        encode_text(part, {.at_start = is_first, .normalized = true}, scratch, out);
      },
      [&](TokenId id) { out.push_back(id); });
}

void Tokenizer::refuse_specials(std::string_view text, const SpecialTokens& special) const {
  std::string buffer;
  auto found = specials_.find_disallowed(text, special);
  if (!found)
    found = normalized_specials_.find_disallowed(normalize_text(spec_, text, buffer), special);
  LIMPID_CHECK(ArgumentError, !found,
               "[tokenizer] the text contains the control token '{}', which is not allowed",
               spec_.pieces[static_cast<size_t>(*found)]);
}

std::vector<TokenId> Tokenizer::encode(std::string_view text, const EncodeOptions& options) const {
  std::vector<TokenId> ids;
  ids.reserve(text.size() / 4 + 2);
  encode(text, options, ids);
  return ids;
}

std::vector<std::vector<TokenId>> Tokenizer::encode_batch(std::span<const std::string_view> texts,
                                                          const EncodeOptions& options,
                                                          int n_threads) const {
  LIMPID_CHECK(ArgumentError, n_threads >= 0, "[tokenizer] n_threads is {}; it must be at least 0",
               n_threads);
  const int64_t n = std::ssize(texts);
  std::vector<std::vector<TokenId>> ids(texts.size());
  ThreadPool threads(n < 2 ? 1 : static_cast<int>(std::min<int64_t>(n_threads, n)));
  threads.for_each(n, 1, [&](int64_t i) {
    const auto index = static_cast<size_t>(i);
    ids[index] = encode(texts[index], options);
  });
  return ids;
}

std::string_view Tokenizer::bytes_of(TokenId id, bool show_special) const {
  check_id(id);
  if (!show_special && is_control(id)) return {};
  const auto index = static_cast<size_t>(id);
  const size_t begin = index == 0 ? 0 : byte_ends_[index - 1];
  return std::string_view(bytes_).substr(begin, byte_ends_[index] - begin);
}

// SentencePiece tokens begin with a space for each word, so a decoded text begins with the space
// that encoding added; it is removed.
std::string Tokenizer::decode(std::span<const TokenId> ids, bool show_special) const {
  std::string text;
  for (const TokenId id : ids) text += bytes_of(id, show_special);
  if (spec_.adds_space() && text.starts_with(' ')) text.erase(0, 1);
  return text;
}

bool Tokenizer::is_stop(TokenId id) const {
  return std::binary_search(spec_.stop_ids.begin(), spec_.stop_ids.end(), id);
}

bool Tokenizer::is_control(TokenId id) const {
  check_id(id);
  const TokenType type = spec_.types[static_cast<size_t>(id)];
  return type == TokenType::kControl || type == TokenType::kUnknown;
}

std::optional<TokenId> Tokenizer::find(std::string_view piece) const {
  const TokenId id = ids_.find(piece);
  if (id < 0) return std::nullopt;
  return id;
}

StreamDecoder::StreamDecoder(std::shared_ptr<const Tokenizer> tokenizer, bool show_special,
                             bool at_start)
    : tokenizer_(std::move(tokenizer)),
      show_special_(show_special),
      at_start_(at_start && tokenizer_->spec().adds_space()),
      strip_space_(at_start_) {}

// pending_ holds the bytes of an incomplete sequence, at most three between calls. Example: the
// tokens E2 82 and AC give "" and then "€".
std::string StreamDecoder::push(TokenId id) {
  std::string_view bytes = tokenizer_->bytes_of(id, show_special_);
  if (strip_space_ && !bytes.empty()) {
    if (bytes.front() == ' ') bytes.remove_prefix(1);
    strip_space_ = false;
  }
  pending_ += bytes;
  const size_t whole = unicode::complete_prefix(pending_);
  std::string text = unicode::replace_invalid(std::string_view(pending_).substr(0, whole));
  pending_.erase(0, whole);
  return text;
}

std::string StreamDecoder::finish() {
  std::string text = unicode::replace_invalid(pending_);
  pending_.clear();
  strip_space_ = at_start_;
  return text;
}

}  // namespace limpid
