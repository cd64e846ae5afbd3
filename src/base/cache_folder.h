// Where Limpid keeps what it can obtain or make again.
#pragma once

#include <string>
#include <string_view>

namespace limpid {

// ${XDG_CACHE_HOME:-~/.cache}/limpid, or its folder `name`; it need not exist. Throws ResourceError
// when neither XDG_CACHE_HOME nor HOME is set.
std::string cache_folder(std::string_view name = {});

}  // namespace limpid
