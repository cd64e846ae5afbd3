// Makes text from files and models fit for messages of one line and for pictures.
#pragma once

#include <string>
#include <string_view>

namespace limpid {

// `text` with control characters and invalid UTF-8 escaped ("\x0a"), cut after 100 bytes.
std::string printable(std::string_view text);

// `text` with signs for what cannot be seen, as on the page of `explain`: "·" for a blank, "⏎" for
// a newline, "⇥" for a tab, "␍" for a carriage return, U+FFFD for other control characters, for
// those that reorder text or have no width, and for invalid UTF-8; "∅" for an empty text.
std::string visible(std::string_view text);

// Whether `text` is UTF-8 (RFC 3629) without NUL.
bool is_clean_utf8(std::string_view text);

}  // namespace limpid
