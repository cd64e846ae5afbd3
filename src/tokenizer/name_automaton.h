// Finds, for each place of a text, the longest of many names that begins there.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace limpid {

// The automaton of Aho and Corasick (1975), over names and texts read backwards. Its state after
// the bytes from the end of a text down to place p is the longest beginning of text[p..] that some
// name ends with. A name that begins at p is the whole of that state, or of a state that its
// failure links lead to. So one pass from the end gives the longest name at every place. Read
// forwards, the automaton would give the names that end at a place, and there can be many of them.
//
// A failure link leads to a shorter state and a byte of the text makes a state longer by one, so a
// pass takes at most two links for each byte, whatever the names and the text are. Building takes
// the time of sorting the names and memory in proportion to their bytes.
class NameAutomaton {
 public:
  using State = uint32_t;
  static constexpr State kStart = 0;  // no name ends with what was read
  static constexpr int32_t kNone = -1;

  NameAutomaton() : NameAutomaton(std::span<const std::string>()) {}  // of no names
  // Names are different from each other and not empty. Throws UnsupportedError for 2^31 bytes of
  // names and more.
  explicit NameAutomaton(std::span<const std::string> names);

  // The state after one more byte, from the right to the left.
  State next(State state, char byte) const {
    const auto label = static_cast<uint8_t>(byte);
    for (; state != kStart; state = nodes_[state].failure) {
      if (const State found = child(state, label); found != kStart) return found;
    }
    return starts_[label];
  }
  // The first place such that next() stays at the start for all bytes from there to `end`, or
  // `begin`: most of a text, and read fast.
  size_t skip_back(std::string_view text, size_t begin, size_t end) const {
    const auto start = [&](size_t place) { return starts_[static_cast<uint8_t>(text[place])]; };
    while (end - begin >= 4 &&
           (start(end - 1) | start(end - 2) | start(end - 3) | start(end - 4)) == kStart)
      end -= 4;
    while (end > begin && start(end - 1) == kStart) --end;
    return end;
  }
  // The index of the longest name that begins where the state was reached; kNone if none does.
  int32_t longest(State state) const { return nodes_[state].name; }
  // The index of the longest name, other than itself, that the name begins with; kNone if none.
  int32_t shorter(int32_t name) const { return shorter_[static_cast<size_t>(name)]; }

 private:
  // Nodes are in the order of their depth, the children of a node side by side.
  struct Node {
    State first_child = 0;  // the last one is before the first child of the node that follows
    State failure = kStart;
    int32_t name = kNone;
  };
  State child(State state, uint8_t label) const {
    const State first = nodes_[state].first_child;
    const size_t count = nodes_[state + 1].first_child - first;
    if (count == 0) return kStart;
    if (labels_[first] == label) return first;
    const void* found = std::memchr(labels_.data() + first, label, count);
    if (found == nullptr) return kStart;
    return static_cast<State>(static_cast<const uint8_t*>(found) - labels_.data());
  }

  std::vector<Node> nodes_;      // and one more behind the last
  std::vector<uint8_t> labels_;  // by node: the byte that leads to it
  std::array<State, 256> starts_{};
  std::vector<int32_t> shorter_;  // by name
};

}  // namespace limpid
