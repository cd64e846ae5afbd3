// The content of a mapped file as text.
#pragma once

#include <string_view>

#include "base/mapped_file.h"

namespace limpid {

inline std::string_view text_of(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

}  // namespace limpid
