// Makes text from files fit for messages of one line.
#pragma once

#include <string>
#include <string_view>

namespace limpid {

// `text` with control characters and invalid UTF-8 escaped ("\x0a"), cut after 100 bytes.
std::string printable(std::string_view text);

// Whether `text` is UTF-8 (RFC 3629) without NUL.
bool is_clean_utf8(std::string_view text);

}  // namespace limpid
