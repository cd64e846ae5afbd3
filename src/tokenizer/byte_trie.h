// Finds the longest token that a text begins with.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "tokenizer/tokenizer_spec.h"

namespace limpid {

// A trie over byte strings, stored as one array (a double array: Aoe 1989, "An efficient digital
// search algorithm by using a double-array structure"; here with exclusive or instead of addition).
//
// The child of node n for byte b is at index base(n) ^ b. The child exists if the label stored
// there is b. Bases are unique, so a label can only match a child of n. One step reads one 64-bit
// word, without pointers or per-node tables.
//
// Example: the tokens "a" and "ab". If base(root) = 256, "a" is at 256 ^ 0x61 = 353 with label 'a'.
// If base(353) = 512, "ab" is at 512 ^ 0x62 = 610 with label 'b'. The text "ac" looks at 512 ^ 0x63
// = 611, finds another label or none, and the longest token is "a".
class ByteTrie {
 public:
  using Token = std::pair<std::string_view, TokenId>;
  struct Match {
    TokenId id;  // -1: the text does not begin with a token
    uint32_t size;
  };

  // Creates a trie without tokens.
  ByteTrie() : ByteTrie(std::vector<Token>{}) {}
  // Ignores empty strings. When two strings are equal, the first one is used. Throws
  // UnsupportedError for more than 2^27 nodes and for ids of 2^28 or more.
  explicit ByteTrie(std::vector<Token> tokens);

  // Returns the longest token that [p, end) begins with.
  Match longest(const char* p, const char* end) const {
    const char* stop;
    return longest(p, end, stop);
  }
  // Like above. `stop` receives the position after the last byte that was read.
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
