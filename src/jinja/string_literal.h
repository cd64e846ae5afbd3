// Escapes of string literals, as Jinja decodes them (Python's unicode_escape over
// backslashreplace).
#pragma once

#include <string>
#include <string_view>

namespace limpid::jinja {

struct StringLiteralFault {
  std::string message;
};

// `body` is what stands between the quotes. Throws StringLiteralFault.
std::string decode_string_literal(std::string_view body);

}  // namespace limpid::jinja
