// Why pip could not download.
#pragma once

#include <string>
#include <string_view>

namespace limpid::cli {

// The reason, found in what pip printed, and what to do; pip's last line for an unknown reason.
std::string why_pip_failed(std::string_view log);

}  // namespace limpid::cli
