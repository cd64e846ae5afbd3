// The folder for files that Limpid can download or compute again.
#pragma once

#include <string>
#include <string_view>

namespace limpid {

// Returns ${XDG_CACHE_HOME:-~/.cache}/limpid, or the folder `name` in it. It need not exist. Throws
// ResourceError when neither XDG_CACHE_HOME nor HOME is set.
std::string cache_folder(std::string_view name = {});

}  // namespace limpid
