// Untrusted text on a terminal: a model's answer, a name from a file. A terminal obeys some
// characters, so such text could move the cursor, set a title or hide the text before it.
#pragma once

#include <string>
#include <string_view>

#include "base/utf8.h"

namespace limpid::cli {

// Whether a terminal shows the code point (base/utf8.h) and does nothing else. An invalid byte is
// not harmless, nor is a control (C0 but newline and tab, DEL, C1), nor an embedding, an override
// or an isolate of the bidirectional algorithm (UAX 9), which reorder what follows. Languages that
// are written from right to left need none of them. Async-signal-safe, as unicode::decode is.
bool is_harmless(char32_t code) noexcept;

// `text` with every other character as \u001b, an invalid byte as \xff; JSON stays JSON. A carriage
// return at the end of a line passes.
std::string for_terminal(std::string_view text);

// A text of a model or a user as a string of JSON, in which nothing is left that a terminal would
// obey, not in a pipe either: "a\n", "\u001b[2J". An invalid byte is "\xff".
std::string in_quotes(std::string_view text);

using unicode::n_characters;  // about as many as the columns that the text takes

}  // namespace limpid::cli
