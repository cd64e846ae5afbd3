#include "generate/stop_matcher.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "base/check.h"
#include "base/utf8.h"

namespace limpid {
namespace {

// Length of the longest proper prefix of `stop` that `text` ends with.
size_t overlap(std::string_view text, std::string_view stop) {
  for (size_t n = std::min(text.size(), stop.size() - 1); n > 0; --n) {
    if (text.ends_with(stop.substr(0, n))) return n;
  }
  return 0;
}

}  // namespace

StopMatcher::StopMatcher(std::vector<std::string> stops) : stops_(std::move(stops)) {
  for (const std::string& stop : stops_) {
    LIMPID_CHECK(ArgumentError, !stop.empty(), "[generate] a stop string is empty");
    LIMPID_CHECK(ArgumentError, unicode::begins_character(stop[0]),
                 "[generate] a stop string is not UTF-8: it begins inside a character");
  }
  // When several occurrences end together, the longest begins first.
  std::ranges::stable_sort(stops_, std::greater<>(), &std::string::size);
}

std::string StopMatcher::push(std::string_view text) {
  if (!matched_.empty()) return "";
  const size_t n_searched = held_.size();
  held_ += text;
  for (size_t end = n_searched + 1; end <= held_.size(); ++end) {
    const auto so_far = std::string_view(held_).substr(0, end);
    for (const std::string& stop : stops_) {
      if (!so_far.ends_with(stop)) continue;
      matched_ = stop;
      held_.resize(end - stop.size());
      return std::exchange(held_, "");
    }
  }
  size_t n_held = 0;
  for (const std::string& stop : stops_) n_held = std::max(n_held, overlap(held_, stop));
  std::string ready = held_.substr(0, held_.size() - n_held);
  held_.erase(0, ready.size());
  return ready;
}

std::string StopMatcher::finish() { return std::exchange(held_, ""); }

}  // namespace limpid
