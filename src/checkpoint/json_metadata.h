// JSON as metadata. Nested objects become keys joined with dots.
#pragma once

#include <string>
#include <string_view>

#include "checkpoint/metadata.h"

namespace limpid {

constexpr uint64_t kLongestConfig = uint64_t{16} << 20;  // bytes of a configuration file

// Sets `prefix` + key for every member of the JSON object in `bytes`, and of the objects inside it.
// With the prefix "config.", {"rope_scaling": {"factor": 8}} becomes "config.rope_scaling.factor" =
// 8.
//
// A member that is null is left out, as if absent; the array of strings prefix + "(null)" lists the
// keys of such members. An array whose elements have one type becomes an array. Any other array
// becomes an empty value with the type name "array", which says only that it was there.
//
// Throws FormatError, which names `path` and the place, when `bytes` are not JSON, are nested
// deeper than 64, repeat a key, have whole numbers beyond 64 bits, or are longer than
// kLongestConfig.
void add_json(const std::string& path, std::string_view bytes, const std::string& prefix,
              Metadata& metadata);

}  // namespace limpid
