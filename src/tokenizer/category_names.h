// The names of general categories in regular expressions.
#pragma once

#include <optional>
#include <string_view>

#include "tokenizer/unicode.h"

namespace limpid::unicode {

// Returns the properties of a general category by its name ("L", "Lu", "Letter"), or nothing for an
// unknown name.
std::optional<Properties> category_named(std::string_view name);

}  // namespace limpid::unicode
