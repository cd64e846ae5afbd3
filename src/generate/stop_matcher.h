// Finds stop strings in text that arrives in pieces.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace limpid {

// The way in which the text is cut into pieces does not change what is found: the stop string whose
// occurrence ends first and, among those that end together, the one that begins first. Text that
// may be the start of a stop string is held back. With the stop string "\nUser:", the pieces
// "Yes.", "\nUs" and "e it." give "Yes.", "" and "\nUse it.".
class StopMatcher {
 public:
  // Throws ArgumentError for an empty stop string and for one that begins inside a UTF-8 sequence.
  explicit StopMatcher(std::vector<std::string> stops);

  // Adds text and returns the text that can be given out: all but an end that may become a stop
  // string. After a match it returns the text before the stop string, and nothing from then on.
  std::string push(std::string_view text);
  // No more text will come: returns what was held back.
  std::string finish();
  // The stop string that was found, or "".
  const std::string& matched() const { return matched_; }

 private:
  std::vector<std::string> stops_;
  std::string held_;
  std::string matched_;
};

}  // namespace limpid
