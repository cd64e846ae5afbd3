// Options that users of other programs type out of habit.
#pragma once

#include <string_view>

namespace limpid::cli {

// Why Limpid has no such option and what to do instead, or "" when nobody would expect it.
std::string_view why_not_here(std::string_view option);

}  // namespace limpid::cli
