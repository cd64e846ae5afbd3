// JSON that somebody passes in (messages, tools, lines of standard input), as a document to walk
// and copy. Files that define a model are read with json_file.h.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace limpid {

// Arrays and objects within each other. nlohmann's copies and walks of documents recurse, so what
// is nested deeper must not become one.
inline constexpr int kMaxJsonDepth = 128;

// `name` is what messages call the text: a file, an option, a line. Throws ArgumentError that names
// it and the byte where the text is not JSON, or passes kMaxJsonDepth.
nlohmann::ordered_json parse_json(std::string_view text, const std::string& name);

}  // namespace limpid
