// Which token is the longest that a text begins with.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "tokenizer/tokenizer_spec.h"

namespace limpid {

// A trie over byte strings as one array (a double array, Aoe 1989, with exclusive or for the sum):
// the child of node n by byte b is node base(n) ^ b, if that has the label b; no two nodes have one
// base. A step is one load of eight bytes.
class ByteTrie {
 public:
  using Token = std::pair<std::string_view, TokenId>;
  struct Match {
    TokenId id;  // -1: no token begins the text
    uint32_t size;
  };

  // Matches nothing.
  ByteTrie() : ByteTrie(std::vector<Token>{}) {}
  // Empty strings are left out; of equal strings the first counts. Throws UnsupportedError for more
  // than 2^27 nodes or ids of 2^28 and more.
  explicit ByteTrie(std::vector<Token> tokens);

  // The longest token that [p, end) begins with.
  Match longest(const char* p, const char* end) const {
    const char* stop;
    return longest(p, end, stop);
  }
  // The same; `stop` is behind the last byte that was read.
  Match longest(const char* p, const char* end, const char*& stop) const {
    Match best{-1, 0};
    Node node = nodes_.front();
    const char*& q = stop;
    for (q = p; q < end;) {
      const auto byte = static_cast<uint8_t>(*q++);
      node = nodes_[base_of(node) ^ byte];
      if ((node & kLabelMask) != (kUsed | byte)) break;
      const auto token = static_cast<TokenId>(node >> kTokenShift);
      if (token != 0) best = {token - 1, static_cast<uint32_t>(q - p)};
    }
    return best;
  }

 private:
  // Bits 0-7: label, 8: whether the node is used, 9-35: base, 36-63: token + 1.
  using Node = uint64_t;
  static constexpr uint64_t kUsed = 0x100;
  static constexpr uint64_t kLabelMask = 0x1FF;
  static constexpr int kBaseShift = 9;
  static constexpr int kTokenShift = 36;
  static constexpr uint64_t kMaxNodes = uint64_t{1} << (kTokenShift - kBaseShift);
  static constexpr uint64_t kMaxTokens = (uint64_t{1} << (64 - kTokenShift)) - 1;
  static size_t base_of(Node node) { return node >> kBaseShift & (kMaxNodes - 1); }
  class Builder;

  std::vector<Node> nodes_;
};

}  // namespace limpid
