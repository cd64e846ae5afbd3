#include "tokenizer/name_automaton.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/check.h"

namespace limpid {

// When the names are sorted by their reversed bytes, the names that end with the same string are
// adjacent. A node is such a string, and `ranges` has its names; the byte to the left of the string
// divides the range among the children. Example: "ab", "cb", "d" are sorted as they stand. The
// start has the children "b" (ab, cb) and "d"; "b" has the children "ab" and "cb".
//
// Nodes are made in the order of their depth. The failure link of a child is what next() gives for
// the failure link of its parent, a shorter string, so the nodes that next() visits are complete.
NameAutomaton::NameAutomaton(std::span<const std::string> names) : shorter_(names.size(), kNone) {
  size_t n_bytes = 0;
  for (const std::string& name : names) n_bytes += name.size();
  LIMPID_CHECK(UnsupportedError, n_bytes < std::numeric_limits<int32_t>::max(),
               "[tokenizer] the tokens have {} bytes, which is too much", n_bytes);
  std::vector<int32_t> order(names.size());
  std::iota(order.begin(), order.end(), 0);
  const auto name_of = [&](size_t i) -> const std::string& {
    return names[static_cast<size_t>(order[i])];
  };
  std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    const std::string& left = names[static_cast<size_t>(a)];
    const std::string& right = names[static_cast<size_t>(b)];
    return std::lexicographical_compare(left.rbegin(), left.rend(), right.rbegin(), right.rend());
  });
  struct Range {  // in `order`: the names that end with the string of a node
    size_t begin, end, depth;
  };
  std::vector<Range> ranges{{0, order.size(), 0}};
  nodes_.emplace_back();
  labels_.push_back(0);
  for (State node = 0; node < nodes_.size(); ++node) {
    size_t begin = ranges[node].begin;
    const size_t end = ranges[node].end;
    const size_t depth = ranges[node].depth;
    nodes_[node].first_child = static_cast<State>(nodes_.size());
    if (begin < end && name_of(begin).size() == depth) ++begin;
    while (begin < end) {
      const auto byte_of = [&](size_t i) { return name_of(i)[name_of(i).size() - 1 - depth]; };
      const char byte = byte_of(begin);
      size_t stop = begin + 1;
      while (stop < end && byte_of(stop) == byte) ++stop;
      Node made;
      if (node != kStart) made.failure = next(nodes_[node].failure, byte);
      made.name = nodes_[made.failure].name;
      if (name_of(begin).size() == depth + 1) {
        shorter_[static_cast<size_t>(order[begin])] = made.name;
        made.name = order[begin];
      }
      if (node == kStart) starts_[static_cast<uint8_t>(byte)] = static_cast<State>(nodes_.size());
      nodes_.push_back(made);
      labels_.push_back(static_cast<uint8_t>(byte));
      ranges.push_back({begin, stop, depth + 1});
      begin = stop;
    }
  }
  nodes_.push_back({static_cast<State>(nodes_.size()), kStart, kNone});
}

}  // namespace limpid
