// Text from files in messages of one line.
#pragma once

#include <string>
#include <string_view>

namespace limpid {

// `text` from a file, fit for a one-line message: control characters escaped, long text cut.
std::string printable(std::string_view text);

// Whether `text` is UTF-8 (RFC 3629) without NUL.
bool is_clean_utf8(std::string_view text);

}  // namespace limpid
