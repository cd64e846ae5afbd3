// JSON that a caller or user passes in (messages, tools, lines of standard input), as a document
// that can be walked and copied; and a document as text. Files that define a model are read with
// json_file.h.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace limpid {

// The deepest nesting. nlohmann's copies and walks of documents recurse, so deeper text must not
// become a document.
inline constexpr int kMaxJsonDepth = 128;

// `name` is what messages call the text: a file, an option, a line. Throws ArgumentError, which
// names it, when the text is not JSON (with the byte) or is nested deeper than kMaxJsonDepth, and
// when an object has two members of one name: programs differ in which of the two counts (RFC 8259,
// section 4).
nlohmann::ordered_json parse_json(std::string_view text, const std::string& name);

// In one line, or indented by so many blanks a level. Bytes that are not UTF-8 become U+FFFD.
std::string dump_json(const nlohmann::ordered_json& json, int indent = -1);

}  // namespace limpid
