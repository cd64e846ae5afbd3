// Text files from the web.
#pragma once

#include <string>

namespace limpid::cli {

// The path of a copy of `url` (http or https) under ${XDG_CACHE_HOME:-~/.cache}/limpid/data. It is
// fetched the first time and kept; at most 1 GiB. Throws ArgumentError for another kind of address,
// ResourceError when it cannot be had.
std::string download_once(const std::string& url);

}  // namespace limpid::cli
