// Finds stop strings in text that comes in pieces.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace limpid {

// How the text is cut into pieces does not change what is found: the stop string whose occurrence
// ends first, and of those the one that begins first.
class StopMatcher {
 public:
  // Throws ArgumentError for an empty stop string or one that begins inside a UTF-8 sequence.
  explicit StopMatcher(std::vector<std::string> stops);

  // Adds text and returns what can be given out: not what may yet become a stop string. After a
  // match what stood before it comes out, and nothing any more.
  std::string push(std::string_view text);
  // No more text will come: what was held back.
  std::string finish();
  // The stop string that was found, or empty.
  const std::string& matched() const { return matched_; }

 private:
  std::vector<std::string> stops_;
  std::string held_;
  std::string matched_;
};

}  // namespace limpid
