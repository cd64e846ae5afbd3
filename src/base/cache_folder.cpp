#include "base/cache_folder.h"

#include <cstdlib>

#include "base/check.h"

namespace limpid {

std::string cache_folder(std::string_view name) {
  const auto variable = [](const char* key) {
    const char* value = std::getenv(key);
    return std::string(value == nullptr ? "" : value);
  };
  std::string folder = variable("XDG_CACHE_HOME");
  if (folder.empty()) {
    folder = variable("HOME");
    LIMPID_CHECK(ResourceError, !folder.empty(),
                 "cannot tell where models are kept: set HOME or XDG_CACHE_HOME");
    folder += "/.cache";
  }
  folder += "/limpid";
  if (!name.empty()) folder.append("/").append(name);
  return folder;
}

}  // namespace limpid
