#include "tokenizer/byte_level_bpe.h"

#include <cstring>
#include <limits>

#include "base/check.h"
#include "tokenizer/byte_alphabet.h"
#include "tokenizer/normalize.h"
#include "tokenizer/pre_tokenizer_scanners.h"

namespace limpid {
namespace {

PreTokenizerRule rule_named(const std::string& name) {
  const PreTokenizerRule* rule = find_pre_tokenizer(name);
  if (rule == nullptr) {
    std::string known;
    for (const std::string_view n : pre_tokenizer_names())
      known += (known.empty() ? "" : ", ") + std::string(n);
    throw UnsupportedError(fmt::format(
        "[tokenizer] unknown pre-tokenizer '{}' (tokenizer.ggml.pre); known are: {}", name, known));
  }
  return *rule;
}

// What a piece of text became, kept for its next occurrence: most of a text is few words.
class PieceCache {
 public:
  static constexpr size_t kMaxBytes = 15;
  static constexpr size_t kMaxIds = 3;
  struct Key {
    uint64_t low, high;  // 15 bytes and the length
  };
  struct Entry {
    Key key{0, 0};
    std::array<TokenId, kMaxIds> ids{};
    uint32_t count = 0;
  };

  PieceCache() : entries_(kSize) {}

  // `readable`: how many bytes from p on may be read.
  static Key key_of(const char* p, size_t size, size_t readable) {
    unsigned char bytes[16] = {};
    if (readable >= 16) {
      Key key;
      std::memcpy(&key, p, 16);
      const unsigned bits = static_cast<unsigned>(size) * 8;
      if (bits < 64) {
        key.low &= (uint64_t{1} << bits) - 1;
        key.high = 0;
      } else {
        key.high &= (uint64_t{1} << (bits - 64)) - 1;
      }
      key.high |= static_cast<uint64_t>(size) << 56;
      return key;
    }
    std::memcpy(bytes, p, size);
    bytes[15] = static_cast<unsigned char>(size);
    Key key;
    std::memcpy(&key, bytes, 16);
    return key;
  }
  Entry& slot(const Key& key) {
    uint64_t hash = (key.low ^ (key.high * 0x9E3779B97F4A7C15ULL)) * 0xD6E8FEB86659FD93ULL;
    return entries_[hash >> (64 - kBits)];
  }

 private:
  static constexpr int kBits = 15;
  static constexpr size_t kSize = size_t{1} << kBits;  // 1 MiB
  std::vector<Entry> entries_;
};

}  // namespace

struct ByteLevelBpe::Scratch {
  PieceCache cache;
  Merger merger;
  std::vector<TokenId> symbols;
  std::string normalized;
};

ByteLevelBpe::~ByteLevelBpe() = default;

ByteLevelBpe::ByteLevelBpe(TokenizerSpec given)
    : Tokenizer(std::move(given)),
      rule_(rule_named(spec_.pre)),
      ignore_merges_(spec_.ignore_merges),
      merges_(spec_.merges.size()),
      specials_(spec_) {
  std::string bytes;
  for (size_t i = 0; i < spec_.pieces.size(); ++i) {
    const std::string& piece = spec_.pieces[i];
    if (spec_.types[i] == TokenType::kNormal) {
      // A piece with a character outside the alphabet stands for itself, as in the reference's
      // decoder.
      if (!byte_alphabet::to_bytes(piece, bytes)) bytes = piece;
      add_token_bytes(bytes);
    } else {
      add_token_bytes(special_token_bytes(static_cast<TokenId>(i)));
    }
  }
  byte_ids_.fill(-1);
  if (ignore_merges_) whole_pieces_ = PieceTable(spec_.pieces.size());
  for (TokenId id = 0; id < vocab_size(); ++id) {
    if (spec_.types[static_cast<size_t>(id)] != TokenType::kNormal) continue;
    const std::string_view b = bytes_of(id);
    if (b.size() == 1 && byte_ids_[static_cast<uint8_t>(b[0])] < 0)
      byte_ids_[static_cast<uint8_t>(b[0])] = id;
    if (ignore_merges_ && !b.empty()) whole_pieces_.insert(b, id);
  }
  build_merges();
}

void ByteLevelBpe::build_merges() {
  for (size_t i = 0; i < spec_.merges.size(); ++i) {
    const std::string& merge = spec_.merges[i];
    const size_t space = merge.find(' ');
    LIMPID_CHECK(ArgumentError,
                 space != std::string::npos && space > 0 && space + 1 < merge.size() &&
                     merge.find(' ', space + 1) == std::string::npos,
                 "[tokenizer] merges[{}] is not two pieces with one space between", i);
    const std::string_view left = std::string_view(merge).substr(0, space);
    const std::string_view right = std::string_view(merge).substr(space + 1);
    std::string joined(left);
    joined += right;
    const auto left_id = find(left);
    const auto right_id = find(right);
    const auto joined_id = find(joined);
    LIMPID_CHECK(ArgumentError, left_id && right_id && joined_id,
                 "[tokenizer] merges[{}] speaks of a piece that is not in the vocabulary", i);
    LIMPID_CHECK(ArgumentError, !is_control(*joined_id),
                 "[tokenizer] merges[{}] would make a control token out of plain text", i);
    LIMPID_CHECK(ArgumentError,
                 merges_.insert(*left_id, *right_id, static_cast<uint32_t>(i), *joined_id),
                 "[tokenizer] merges[{}] is there twice", i);
  }
}

void ByteLevelBpe::encode(std::string_view text, const EncodeOptions& options,
                          std::vector<TokenId>& out) const {
  LIMPID_CHECK(
      ArgumentError, text.size() < static_cast<size_t>(std::numeric_limits<int32_t>::max()),
      "[tokenizer] a text of {} bytes is too long; encode it in parts below 2 GiB", text.size());
  std::unique_ptr<Scratch> scratch;
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      scratch = std::move(idle_.back());
      idle_.pop_back();
    }
  }
  if (scratch == nullptr) scratch = std::make_unique<Scratch>();
  if (options.add_special && spec_.add_bos) out.push_back(*spec_.bos);
  specials_.partition(
      text, options.special, [&](std::string_view part) { encode_text(part, *scratch, out); },
      [&](TokenId id) { out.push_back(id); });
  if (options.add_special && spec_.add_eos) out.push_back(*spec_.eos);
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(scratch));
}

void ByteLevelBpe::encode_text(std::string_view text, Scratch& scratch,
                               std::vector<TokenId>& out) const {
  if (rule_.normalize_nfc && !unicode::is_plain_nfc(text)) {
    scratch.normalized = unicode::normalize_nfc(text);
    text = scratch.normalized;
  }
  const char* const end = text.data() + text.size();
  pre_tokenizer_scanners::split(
      rule_.pre_tokenizer, text.data(), end, [&](const char* p, size_t size) {
        if (size > PieceCache::kMaxBytes) return encode_piece(p, size, scratch, out);
        const PieceCache::Key key = PieceCache::key_of(p, size, static_cast<size_t>(end - p));
        PieceCache::Entry& entry = scratch.cache.slot(key);
        if (entry.key.low == key.low && entry.key.high == key.high) {
          out.insert(out.end(), entry.ids.begin(), entry.ids.begin() + entry.count);
          return;
        }
        const size_t before = out.size();
        encode_piece(p, size, scratch, out);
        const size_t count = out.size() - before;
        if (count > PieceCache::kMaxIds) return;
        entry.key = key;
        entry.count = static_cast<uint32_t>(count);
        for (size_t i = 0; i < count; ++i) entry.ids[i] = out[before + i];
      });
}

void ByteLevelBpe::encode_piece(const char* p, size_t size, Scratch& scratch,
                                std::vector<TokenId>& out) const {
  if (ignore_merges_) {
    const TokenId whole = whole_pieces_.find({p, size});
    if (whole >= 0) {
      out.push_back(whole);
      return;
    }
  }
  std::vector<TokenId>& symbols = scratch.symbols;
  symbols.clear();
  for (size_t i = 0; i < size; ++i) {
    const TokenId id = byte_ids_[static_cast<uint8_t>(p[i])];
    if (id >= 0) symbols.push_back(id);
  }
  scratch.merger.merge(merges_, symbols);
  out.insert(out.end(), symbols.begin(), symbols.end());
}

}  // namespace limpid
