#include "tokenizer/linear_bpe.h"

#include <algorithm>
#include <bit>
#include <tuple>

#include "base/check.h"

namespace limpid {

namespace {

constexpr std::pair<TokenId, TokenId> kNoHalves{-1, -1};

uint64_t hash_of(TokenId left, TokenId right) {
  const uint64_t key =
      static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
  const uint64_t product = key * 0x9E3779B97F4A7C15ULL;
  return (product ^ product >> 32) * 0xD6E8FEB86659FD93ULL;
}

}  // namespace

// Finds the merge that forms each token, shorter tokens first. The merge that forms a token is the
// last one when its bytes are merged. Without that merge, the bytes end as two tokens, and these
// two are its halves. One run of merging per token therefore replaces a test of every way to cut
// the token.
class LinearBpe::Builder {
 public:
  Builder(LinearBpe& bpe, const std::array<TokenId, 256>& byte_ids, TokenId last, size_t n_merges)
      : bpe_(bpe) {
    const size_t n_ids = static_cast<size_t>(last) + 1;
    LIMPID_CHECK(UnsupportedError, n_ids < (size_t{1} << 23) && n_merges < (size_t{1} << 30),
                 "[tokenizer] {} tokens and {} merges are too many", n_ids, n_merges);
    begins_.resize(n_ids);
    bpe.byte_ids_ = byte_ids;
    bpe.origins_.resize(n_ids);
    bpe.sizes_.resize(n_ids);
    bpe.id_bits_ = std::bit_width(n_ids);
    bpe.made_.resize(std::bit_ceil(std::max<size_t>(n_ids * 2, 16)));
    bpe.shift_ = 64 - std::countr_zero(bpe.made_.size());
    bpe.may_merge_.resize(bpe.made_.size() / 16);  // four bits for each slot
    for (size_t byte = 0; byte < byte_ids.size(); ++byte) {
      if (byte_ids[byte] < 0) continue;
      bpe.sizes_[static_cast<size_t>(byte_ids[byte])] = 1;
      keep(byte_ids[byte], std::string(1, static_cast<char>(byte)));
    }
  }

  // Returns the two tokens that the bytes merge into, or kNoHalves if there are not exactly two.
  Halves halves_of(std::string_view bytes) {
    const std::span<const TokenId> tokens = bpe_.encode_by_merging(bytes, work_);
    return tokens.size() == 2 ? Halves(tokens[0], tokens[1]) : kNoHalves;
  }
  std::string_view bytes_of(TokenId id) const {
    return std::string_view(bytes_).substr(begins_[static_cast<size_t>(id)], bpe_.size_of(id));
  }
  void add(const Merge& merge, std::string_view bytes) {
    bpe_.add_origin(merge);
    keep(merge.merged, bytes);
  }
  // The trie finds the longest token at a position of the text. shorter_ has, for each token, the
  // next shorter token that begins with the same bytes, so that the search uses the trie once for
  // each position.
  void build_trie() {
    std::vector<ByteTrie::Token> tokens;
    tokens.reserve(made_.size());
    for (const TokenId id : made_) tokens.emplace_back(bytes_of(id), id);
    bpe_.shorter_.resize(begins_.size(), {-1, 0});
    bpe_.trie_ = ByteTrie(tokens);
    for (const auto& [text, id] : tokens) {
      const char* const end = text.data() + text.size() - 1;
      bpe_.shorter_[static_cast<size_t>(id)] = bpe_.trie_.longest(text.data(), end);
    }
  }

 private:
  void keep(TokenId id, std::string_view bytes) {
    begins_[static_cast<size_t>(id)] = bytes_.size();
    bytes_ += bytes;
    made_.push_back(id);
  }

  LinearBpe& bpe_;
  std::string bytes_;           // of the tokens that are made
  std::vector<size_t> begins_;  // by id
  std::vector<TokenId> made_;
  Work work_;
};

// Several merges of the list can form the same token. Only one of them happens when the token's
// bytes are merged; the others are dropped here.
LinearBpe::LinearBpe(const std::array<TokenId, 256>& byte_ids, std::vector<Merge> merges) {
  TokenId last = std::max(*std::max_element(byte_ids.begin(), byte_ids.end()), 0);
  for (const Merge& merge : merges) last = std::max({last, merge.left, merge.right, merge.merged});
  Builder builder(*this, byte_ids, last, merges.size());
  // Parts come before what they are parts of, so their origins are known before its own.
  std::ranges::stable_sort(merges, {}, &Merge::size);
  constexpr Halves kUnknown{-2, -2};
  std::vector<Halves> halves(origins_.size(), kUnknown);  // by id
  std::string bytes;
  for (Merge& merge : merges) {
    if (stands_alone(merge.merged)) continue;
    const Halves wanted(merge.left, merge.right);
    const bool is_listed = wanted != kNoHalves;
    if (is_listed) {
      if (!stands_alone(merge.left) || !stands_alone(merge.right)) continue;
      bytes.assign(builder.bytes_of(merge.left)).append(builder.bytes_of(merge.right));
    } else {
      bytes = merge.bytes;
    }
    Halves& found = halves[static_cast<size_t>(merge.merged)];
    if (found == kUnknown) found = builder.halves_of(bytes);
    if (found == kNoHalves || (is_listed && found != wanted)) continue;
    std::tie(merge.left, merge.right) = found;
    builder.add(merge, bytes);
  }
  builder.build_trie();
}

// Records the merge that forms a token, its time (see Origin), and its entry in the hash table.
void LinearBpe::add_origin(const Merge& merge) {
  const Origin& left = origin(merge.left);
  const Origin& right = origin(merge.right);
  const auto id = static_cast<size_t>(merge.merged);
  sizes_[id] = size_of(merge.left) + size_of(merge.right);
  Origin& made = origins_[id];
  made.left = merge.left;
  made.right = merge.right;
  made.time = std::max({merge.rank + 1, left.time, right.time});
  made.rank = merge.rank;
  made.follows_left = left.time == made.time && right.time < made.time;
  made.follows_right = right.time == made.time;
  const uint64_t hash = hash_of(merge.left, merge.right);
  may_merge_[filter_word(hash)] |= filter_bit(hash);
  size_t slot = hash >> shift_;
  while (made_[slot] != 0) slot = (slot + 1) & (made_.size() - 1);
  made_[slot] = static_cast<uint32_t>(hash) << id_bits_ | static_cast<uint32_t>(merge.merged + 1);
}

// Undoes the later of the two merges that formed the pair. If both have the same time, undoes the
// right one, because the left one happened first. Returns false if both tokens are bytes.
bool LinearBpe::split_once(Pair& pair) const {
  const Origin& left = origin(pair.left);
  const Origin& right = origin(pair.right);
  // The part that stays at the boundary exists until the undone merge happens. That merge happens
  // when the process reaches its time. If it happened at once after the merge of the part at the
  // boundary, only its own rank matters: another merge of that part must have a lower rank to come
  // first.
  if (right.left >= 0 && right.time >= left.time) {
    pair.right_ends = right.follows_left ? right.rank : right.time - 1;
    pair.right = right.left;
    return true;
  }
  if (left.left < 0) return false;
  pair.left_ends = left.follows_right ? left.rank : left.time - 1;
  pair.left = left.right;
  return true;
}

// The filter rejects most pairs with one bit. An entry whose stored hash bits match may still be a
// different pair, so the pair is compared with the origin of the token.
MergeTable::Entry LinearBpe::find(TokenId left, TokenId right) const {
  const uint64_t hash = hash_of(left, right);
  if ((may_merge_[filter_word(hash)] & filter_bit(hash)) == 0) return {};
  const uint32_t tag = static_cast<uint32_t>(hash) << id_bits_;
  const uint32_t id_mask = (uint32_t{1} << id_bits_) - 1;
  for (size_t slot = hash >> shift_; made_[slot] != 0; slot = (slot + 1) & (made_.size() - 1)) {
    if ((made_[slot] & ~id_mask) != tag) continue;
    const TokenId merged = static_cast<TokenId>(made_[slot] & id_mask) - 1;
    const Origin& made = origin(merged);
    if (made.left == left && made.right == right) return {0, made.rank, merged};
  }
  return {};
}

// Returns whether the two tokens merge with each other while both exist. Among equal ranks the
// leftmost pair merges first. The pair therefore needs a lower rank than the merge that ends its
// left token, and at most the rank of the merge that ends its right token.
bool LinearBpe::merges(const Pair& pair) const {
  const MergeTable::Entry made = find(pair.left, pair.right);
  return made.merged >= 0 && made.rank < pair.left_ends && made.rank <= pair.right_ends;
}

// Decides whether two neighbouring tokens fit, with a cache. At each stage of the undoing, the pair
// at the boundary must not merge; if it would, the merge crosses the boundary and the two tokens
// are not the result of merging their bytes.
bool LinearBpe::fit(TokenId left, TokenId right, Work& work) const {
  // Mixes the pair's number with invertible steps within n_bits bits. The high bits select the
  // cache slot. The remaining bits are stored there and identify the pair exactly.
  const int n_bits = std::max(2 * id_bits_, Work::kBits);
  const uint64_t all = (uint64_t{1} << n_bits) - 1;
  uint64_t number = static_cast<uint64_t>(left) << id_bits_ | static_cast<uint64_t>(right);
  number = number * 0x9E3779B97F4A7C15ULL & all;
  number ^= number >> n_bits / 2;
  number = number * 0xD6E8FEB86659FD93ULL & all;
  const int n_rest = n_bits - Work::kBits;
  uint32_t& slot = work.fits_[number >> n_rest];
  constexpr uint32_t kKnown = 2;
  constexpr uint32_t kFits = 1;
  const auto wanted = static_cast<uint32_t>((number & ((uint64_t{1} << n_rest) - 1)) << 2) | kKnown;
  if ((slot & ~kFits) != wanted) {
    Pair pair{left, right};
    bool fits = !merges(pair);
    while (fits && split_once(pair)) {
      fits = !merges(pair);
      --work.steps_left_;
    }
    slot = wanted | (fits ? kFits : 0);
  }
  return (slot & kFits) != 0;
}

// The search described at LinearBpe. tokens_ is the sequence so far, and `at` is its end. Going
// back replaces the last token by the next shorter one at the same position. work.steps_left_
// counts bytes read by the trie, tokens tried and merges undone.
std::span<const TokenId> LinearBpe::encode(std::string_view piece, Work& work) const {
  std::vector<TokenId>& tokens = work.tokens_;
  tokens.clear();
  work.dead_.assign(piece.size() / 64 + 1, 0);
  const char* const end = piece.data() + piece.size();
  const auto is_dead = [&](size_t at) { return (work.dead_[at / 64] >> at % 64 & 1) != 0; };
  work.steps_left_ = kStepsPerByte * (static_cast<int64_t>(piece.size()) + 4);
  for (size_t at = 0; at < piece.size();) {
    const char* read_end;
    ByteTrie::Match next = trie_.longest(piece.data() + at, end, read_end);
    if (next.id < 0) return {};
    work.steps_left_ -= read_end - (piece.data() + at);
    for (;;) {
      if (--work.steps_left_ < 0) return encode_by_merging(piece, work);
      const size_t stop = at + next.size;
      if (!is_dead(stop) && (tokens.empty() || fit(tokens.back(), next.id, work))) {
        tokens.push_back(next.id);
        at = stop;
        break;
      }
      next = shorter_[static_cast<size_t>(next.id)];
      while (next.id < 0) {
        // No token fits here, so no valid sequence passes through this position.
        if (tokens.empty()) return {};
        work.dead_[at / 64] |= uint64_t{1} << at % 64;
        next = shorter_[static_cast<size_t>(tokens.back())];
        at -= size_of(tokens.back());
        tokens.pop_back();
      }
    }
  }
  return tokens;
}

std::span<const TokenId> LinearBpe::encode_by_merging(std::string_view piece, Work& work) const {
  std::vector<TokenId>& symbols = work.tokens_;
  symbols.clear();
  for (const char c : piece) {
    symbols.push_back(byte_ids_[static_cast<uint8_t>(c)]);
    if (symbols.back() < 0) return {};
  }
  work.merger_.merge(*this, symbols);
  return symbols;
}

}  // namespace limpid
