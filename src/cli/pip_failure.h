// Why pip could not download.
#pragma once

#include <string>
#include <string_view>

namespace limpid::cli {

// What pip printed, in words that say what to do; its last line where the reason is not known.
std::string why_pip_failed(std::string_view log);

}  // namespace limpid::cli
