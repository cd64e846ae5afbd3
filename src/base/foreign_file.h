// Recognises files that are often mistaken for models: incomplete downloads, web pages, archives,
// older formats. The error can then say what the file is and what to do.
#pragma once

#include <string>
#include <string_view>

namespace limpid {

// What a file is that begins with `bytes`, and what to do: "a web page: …", "a gzip archive: …"; ""
// for an unknown file.
std::string describe_foreign(std::string_view bytes);
// Throws UnsupportedError with that description, also for a file of text that is not a model. Does
// nothing for an unknown file.
void refuse_foreign(const std::string& path, std::string_view bytes);

}  // namespace limpid
