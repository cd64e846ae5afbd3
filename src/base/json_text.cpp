#include "base/json_text.h"

#include "base/check.h"

namespace limpid {
namespace {

// Counts brackets outside strings. The count may be wrong in a text that is not JSON. That does no
// harm: the parser does not recurse, and it stops at the first mistake.
void check_depth(std::string_view text, const std::string& name) {
  int depth = 0;
  bool in_string = false;
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (in_string) {
      if (c == '\\') ++at;
      in_string = c != '"';
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      LIMPID_CHECK(ArgumentError, ++depth <= kMaxJsonDepth,
                   "{}: byte {}: this JSON is nested deeper than {} levels", name, at + 1,
                   kMaxJsonDepth);
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
}

}  // namespace

nlohmann::ordered_json parse_json(std::string_view text, const std::string& name) {
  check_depth(text, name);
  try {
    return nlohmann::ordered_json::parse(text);
  } catch (const nlohmann::ordered_json::parse_error& error) {
    throw ArgumentError(fmt::format("{}: byte {}: this is not JSON", name, error.byte));
  } catch (const nlohmann::ordered_json::out_of_range&) {
    throw ArgumentError(fmt::format("{}: a number in this JSON does not fit a double", name));
  }
}

}  // namespace limpid
