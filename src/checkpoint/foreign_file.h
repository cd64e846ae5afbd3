// Files that somebody took for a model: half-finished downloads, web pages, archives.
#pragma once

#include <string>
#include <string_view>

namespace limpid {

// What a file that begins with `bytes` is, and what to do about it: "a web page: …", "a gzip
// archive: …". "" when it is nothing known.
std::string describe_foreign(std::string_view bytes);

// Throws UnsupportedError with that description, when there is one.
void refuse_foreign(const std::string& path, std::string_view bytes);

}  // namespace limpid
