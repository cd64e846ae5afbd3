// Finds stop strings in text that arrives in pieces.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace limpid {

// The result does not depend on how the text is cut into pieces. It is the stop string whose
// occurrence ends first and, among those that end together, the one that begins first. Text that
// may be the start of a stop string is held back. With the stop string "\nUser:", the pieces
// "Yes.", "\nUs" and "e it." give "Yes.", "" and "\nUse it.".
class StopMatcher {
 public:
  // Throws ArgumentError for an empty stop string and for one that begins inside a UTF-8 sequence.
  explicit StopMatcher(std::vector<std::string> stops);

  // Adds text. Returns the text that is certainly not part of a stop string: all but an end that
  // may become one. After a match it returns the text before the stop string, and nothing from then
  // on.
  std::string push(std::string_view text);
  // No more text will come: returns what was held back.
  std::string finish();
  // The text that is held back.
  const std::string& held() const { return held_; }
  // The stop string that was found, or "".
  const std::string& matched() const { return matched_; }

 private:
  std::vector<std::string> stops_;
  std::string held_;
  std::string matched_;
};

}  // namespace limpid
