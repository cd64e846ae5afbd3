// Recognises files that are often mistaken for models: incomplete downloads, web pages, archives,
// older formats. The error can then say what the file is and what to do.
#pragma once

#include <string>
#include <string_view>

namespace limpid {

// Throws UnsupportedError, which says what a file that begins with `bytes` is ("a web page: …", "a
// gzip archive: …") and what to do. Does nothing for an unknown file.
void refuse_foreign(const std::string& path, std::string_view bytes);

}  // namespace limpid
