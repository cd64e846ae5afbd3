// Checks that are part of every build, and assertions for bugs in Limpid itself.
#pragma once

#include <fmt/format.h>

#include <cassert>

#include "limpid/error.hpp"

// Throws `ErrorType` with a fmt-formatted message unless `condition` holds:
//   LIMPID_CHECK(ShapeError, w.cols() == x.cols, "[linear] weight has {} columns, x has {}", ...);
#define LIMPID_CHECK(ErrorType, condition, ...)                  \
  do {                                                           \
    if (!(condition)) throw ErrorType(fmt::format(__VA_ARGS__)); \
  } while (false)

// Fails only when Limpid has a bug; no input can make it fail.
#define LIMPID_ASSERT(condition) assert(condition)
