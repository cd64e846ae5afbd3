// Recognises files that are often mistaken for models: incomplete downloads, web pages, archives,
// older formats. The error can then say what the file is and what to do.
#pragma once

#include <string>
#include <string_view>

namespace limpid {

// Describes a file that begins with `bytes`, and says what to do: "a web page: …", "a gzip archive:
// …". Returns "" for an unknown file.
std::string describe_foreign(std::string_view bytes);

// Throws UnsupportedError with that description. Does nothing for an unknown file.
void refuse_foreign(const std::string& path, std::string_view bytes);

}  // namespace limpid
