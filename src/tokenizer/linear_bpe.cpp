#include "tokenizer/linear_bpe.h"

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace limpid {

namespace {

uint64_t hash_of(TokenId left, TokenId right) {
  const uint64_t key =
      static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
  const uint64_t product = key * 0x9E3779B97F4A7C15ULL;
  return (product ^ product >> 32) * 0xD6E8FEB86659FD93ULL;
}

}  // namespace

LinearBpe::LinearBpe(const std::array<TokenId, 256>& byte_ids, std::vector<Merge> merges) {
  TokenId last = 0;
  for (const TokenId id : byte_ids) last = std::max(last, id);
  for (const Merge& merge : merges) last = std::max({last, merge.left, merge.right, merge.merged});
  const size_t n_ids = static_cast<size_t>(last) + 1;
  LIMPID_CHECK(UnsupportedError, n_ids < (size_t{1} << 23) && merges.size() < (size_t{1} << 30),
               "[tokenizer] {} tokens and {} merges are too many", n_ids, merges.size());
  origins_.resize(n_ids);
  sizes_.resize(n_ids);
  for (const TokenId id : byte_ids) {
    if (id >= 0) sizes_[static_cast<size_t>(id)] = 1;
  }
  id_bits_ = std::bit_width(n_ids);
  made_.resize(std::bit_ceil(std::max<size_t>(n_ids * 2, 16)));
  shift_ = 64 - std::countr_zero(made_.size());
  may_merge_.resize(made_.size() / 16);  // four bits for each slot
  // A token's parts are shorter than it is, so their origins are known before its own.
  std::stable_sort(merges.begin(), merges.end(),
                   [](const Merge& a, const Merge& b) { return a.size < b.size; });
  size_t n_made = 0;
  for (const Merge& merge : merges) {
    if (!is_made_by(merge)) continue;
    add_origin(merge);
    merges[n_made++] = merge;
  }
  build_trie(byte_ids, std::span(merges).first(n_made));
}

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

// Whether the bytes of the merged token come to this merge: no merge crosses from left to right
// before both are whole.
bool LinearBpe::is_made_by(const Merge& merge) const {
  if (!stands_alone(merge.left) || !stands_alone(merge.right) || stands_alone(merge.merged))
    return false;
  Pair pair{merge.left, merge.right};
  while (split_once(pair)) {
    if (merges(pair)) return false;
  }
  return true;
}

// Undoes the later of the merges that made the two (of equals the right one: the left one was made
// first). False if both are bytes.
bool LinearBpe::split_once(Pair& pair) const {
  const Origin& left = origin(pair.left);
  const Origin& right = origin(pair.right);
  // What is left ends when the merge comes that is undone. That is when merging has come to its
  // time; but if it followed at once upon the part at the boundary, it is only its rank that
  // another merge of that part must go before.
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

// Whether the two merge while both are there. As the leftmost of equals the pair loses to the merge
// that ends its left one and wins over the one that ends its right one.
bool LinearBpe::merges(const Pair& pair) const {
  const uint64_t hash = hash_of(pair.left, pair.right);
  if ((may_merge_[filter_word(hash)] & filter_bit(hash)) == 0) return false;
  const uint32_t tag = static_cast<uint32_t>(hash) << id_bits_;
  const uint32_t id_mask = (uint32_t{1} << id_bits_) - 1;
  for (size_t slot = hash >> shift_; made_[slot] != 0; slot = (slot + 1) & (made_.size() - 1)) {
    if ((made_[slot] & ~id_mask) != tag) continue;
    const Origin& made = origin(static_cast<TokenId>(made_[slot] & id_mask) - 1);
    if (made.left == pair.left && made.right == pair.right)
      return made.rank < pair.left_ends && made.rank <= pair.right_ends;
  }
  return false;
}

bool LinearBpe::fit(TokenId left, TokenId right, Work& work) const {
  // The pair's number is mixed by steps that can be undone, within its own bits: those above say
  // where it is kept, the rest beside it says that it is the pair.
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
    while (fits && split_once(pair)) fits = !merges(pair);
    slot = wanted | (fits ? kFits : 0);
  }
  return (slot & kFits) != 0;
}

void LinearBpe::build_trie(const std::array<TokenId, 256>& byte_ids, std::span<const Merge> made) {
  std::string bytes;
  size_t size = byte_ids.size();
  for (const Merge& merge : made) size += size_of(merge.merged);
  bytes.reserve(size);  // views into it stay valid
  std::vector<std::pair<std::string_view, TokenId>> tokens;
  tokens.reserve(byte_ids.size() + made.size());
  std::vector<size_t> begins(origins_.size());
  const auto add = [&](TokenId id, size_t begin) {
    begins[static_cast<size_t>(id)] = begin;
    tokens.emplace_back(std::string_view(bytes).substr(begin), id);
  };
  for (size_t byte = 0; byte < byte_ids.size(); ++byte) {
    if (byte_ids[byte] < 0) continue;
    bytes.push_back(static_cast<char>(byte));
    add(byte_ids[byte], bytes.size() - 1);
  }
  for (const Merge& merge : made) {
    const size_t begin = bytes.size();
    for (const TokenId part : {merge.left, merge.right})
      bytes.append(bytes, begins[static_cast<size_t>(part)], size_of(part));
    add(merge.merged, begin);
  }
  shorter_.resize(origins_.size(), {-1, 0});
  trie_ = ByteTrie(tokens);
  for (const auto& [text, id] : tokens) {
    const char* const end = text.data() + text.size() - 1;
    shorter_[static_cast<size_t>(id)] = trie_.longest(text.data(), end);
  }
}

std::span<const TokenId> LinearBpe::encode(std::string_view piece, Work& work) const {
  std::vector<TokenId>& tokens = work.tokens_;
  tokens.clear();
  work.dead_.assign(piece.size() / 64 + 1, 0);
  const char* const end = piece.data() + piece.size();
  const auto is_dead = [&](size_t at) { return (work.dead_[at / 64] >> at % 64 & 1) != 0; };
  for (size_t at = 0; at < piece.size();) {
    ByteTrie::Match next = trie_.longest(piece.data() + at, end);
    if (next.id < 0) return {};
    for (;;) {
      const size_t stop = at + next.size;
      if (!is_dead(stop) && (tokens.empty() || fit(tokens.back(), next.id, work))) {
        tokens.push_back(next.id);
        at = stop;
        break;
      }
      next = shorter_[static_cast<size_t>(next.id)];
      while (next.id < 0) {
        // Nothing fits here, so nothing goes through here.
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

}  // namespace limpid
