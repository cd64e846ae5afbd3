// Checks that are part of every build, and assertions for bugs in Limpid itself.
#pragma once

#include <fmt/format.h>

#include <cassert>
#include <string>
#include <string_view>

#include "limpid/error.hpp"

// Throws `ErrorType` with a fmt-formatted message unless `condition` holds:
//   LIMPID_CHECK(ShapeError, w.cols() == x.cols, "[linear] weight has {} columns, x has {}", ...);
#define LIMPID_CHECK(ErrorType, condition, ...)                  \
  do {                                                           \
    if (!(condition)) throw ErrorType(fmt::format(__VA_ARGS__)); \
  } while (false)

namespace limpid {

// Throws a FormatError about `field` of the file `path`, with a formatted problem.
template <typename... Args>
[[noreturn]] void throw_format_error(std::string_view path, std::string_view field,
                                     fmt::format_string<Args...> problem, Args&&... args) {
  throw FormatError(std::string(path), FormatError::kNoOffset, std::string(field),
                    fmt::format(problem, std::forward<Args>(args)...));
}

}  // namespace limpid

// Fails only when Limpid has a bug; no input can make it fail.
#define LIMPID_ASSERT(condition) assert(condition)
