#include "tokenizer/byte_trie.h"

#include <algorithm>
#include <array>
#include <bit>
#include <deque>
#include <span>

#include "base/check.h"

namespace limpid {

// Assigns an array index to every node. Indices are divided into blocks of 256, and all children of
// a node are in one block, because base(n) ^ b changes only the low eight bits. Nodes are placed in
// depth-first order, and a single child is placed near its parent: from the third byte on most
// nodes have only one child, and the nodes that follow are then in the same cache line. The first
// block stays empty. A node without children has base 0, so its look-ups end there.
class ByteTrie::Builder {
 public:
  explicit Builder(std::vector<Node>& nodes) : nodes_(nodes) {}

  void build(std::span<const Token> tokens) {
    add_block();
    free_.front() = {};
    add_block();
    std::deque<Range> open{{0, 0, 0, tokens.size()}};
    std::vector<Range> children;
    while (!open.empty()) {
      const Range range = open.front();
      open.pop_front();
      children.clear();
      place_children(tokens, range, children);
      if (range.depth + 1 < kShallow) {
        open.insert(open.end(), children.begin(), children.end());
      } else {
        open.insert(open.begin(), children.begin(), children.end());
      }
    }
  }

 private:
  struct Range {  // the tokens whose bytes begin with the path to a node
    size_t node;
    size_t depth;
    size_t begin, end;
  };
  struct Child {
    uint8_t byte;
    size_t begin, end;
  };
  using Bits = std::array<uint64_t, 4>;  // one for each node of a block
  static constexpr size_t kBlock = 256;
  static constexpr size_t kShallow = 3;      // depth up to which nodes are placed level by level
  static constexpr size_t kOpenBlocks = 16;  // older ones are too full to search

  void place_children(std::span<const Token> tokens, const Range& range,
                      std::vector<Range>& children) {
    const size_t depth = range.depth;
    size_t begin = range.begin;
    const auto ends_here = [&](size_t i) {
      return i < range.end && tokens[i].first.size() == depth;
    };
    if (ends_here(begin) && depth > 0)
      nodes_[range.node] |= static_cast<uint64_t>(tokens[begin].second + 1) << kTokenShift;
    while (ends_here(begin)) ++begin;
    children_.clear();
    while (begin < range.end) {
      const char byte = tokens[begin].first[depth];
      size_t end = begin;
      while (end < range.end && tokens[end].first[depth] == byte) ++end;
      children_.push_back({static_cast<uint8_t>(byte), begin, end});
      begin = end;
    }
    if (children_.empty()) return;
    const size_t base = find_base(range.node);
    set(base_used_, base);
    nodes_[range.node] |= base << kBaseShift;
    for (const Child& child : children_) {
      const size_t slot = base ^ child.byte;
      free_[slot / kBlock][slot % kBlock / 64] &= ~(uint64_t{1} << slot % 64);
      nodes_[slot] = kUsed | child.byte;
      children.push_back({slot, depth + 1, child.begin, child.end});
    }
  }

  // Finds a new base for which all of children_ have free indices.
  size_t find_base(size_t parent) {
    if (children_.size() == 1) {
      for (size_t i = 1; i < kBlock; ++i) {
        const size_t slot = parent / kBlock * kBlock + (parent + i) % kBlock;
        if (is_set(free_, slot) && fits(slot ^ children_.front().byte))
          return slot ^ children_.front().byte;
      }
    }
    while (first_open_ < free_.size() && free_[first_open_] == Bits{}) ++first_open_;
    for (size_t block = first_open_; block < free_.size(); ++block) {
      for (size_t word = 0; word < 4; ++word) {
        for (uint64_t left = free_[block][word]; left != 0; left &= left - 1) {
          const size_t slot =
              block * kBlock + word * 64 + static_cast<size_t>(std::countr_zero(left));
          const size_t base = slot ^ children_.front().byte;
          if (fits(base)) return base;
        }
      }
    }
    add_block();
    return nodes_.size() - kBlock;
  }
  // Returns whether the base is not used yet and the indices of all children are free.
  bool fits(size_t base) const {
    return !is_set(base_used_, base) && std::ranges::all_of(children_, [&](const Child& child) {
      return is_set(free_, base ^ child.byte);
    });
  }
  static bool is_set(const std::vector<Bits>& bits, size_t i) {
    return (bits[i / kBlock][i % kBlock / 64] >> i % 64 & 1) != 0;
  }
  static void set(std::vector<Bits>& bits, size_t i) {
    bits[i / kBlock][i % kBlock / 64] |= uint64_t{1} << i % 64;
  }
  void add_block() {
    LIMPID_CHECK(UnsupportedError, nodes_.size() + kBlock <= kMaxNodes,
                 "[tokenizer] the vocabulary has more than {} different prefixes of tokens",
                 kMaxNodes);
    nodes_.resize(nodes_.size() + kBlock);
    free_.push_back({~uint64_t{0}, ~uint64_t{0}, ~uint64_t{0}, ~uint64_t{0}});
    base_used_.emplace_back();
    if (free_.size() > kOpenBlocks) first_open_ = std::max(first_open_, free_.size() - kOpenBlocks);
  }

  std::vector<Node>& nodes_;
  std::vector<Bits> free_;
  std::vector<Bits> base_used_;
  size_t first_open_ = 0;
  std::vector<Child> children_;
};

ByteTrie::ByteTrie(std::vector<Token> tokens) {
  for (const auto& [text, id] : tokens) {
    LIMPID_CHECK(UnsupportedError, static_cast<uint64_t>(id) < kMaxTokens,
                 "[tokenizer] token id {} is too high", id);
  }
  std::ranges::stable_sort(tokens, {}, &Token::first);
  Builder(nodes_).build(tokens);
}

}  // namespace limpid
