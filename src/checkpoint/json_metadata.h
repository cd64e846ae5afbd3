// JSON as metadata: nested keys joined with dots.
#pragma once

#include <string>
#include <string_view>

#include "checkpoint/metadata.h"

namespace limpid {

constexpr uint64_t kLongestConfig = uint64_t{16} << 20;  // bytes of a configuration file

// Sets `prefix` + key for every member of the object that `bytes` hold, and of the objects in it
// ("rope_scaling": {"factor": 8} -> prefix + "rope_scaling.factor"). null is the same as absent,
// but that the keys that are null are listed in the array of strings prefix + "(null)".
// Arrays of one kind become arrays; of others only that they are there is kept, with an empty value
// and the type name "array". Throws FormatError naming `path` and the place for what is not JSON,
// nested deeper than 64, a key that is there twice, whole numbers beyond 64 bits, or a file above
// kLongestConfig.
void add_json(const std::string& path, std::string_view bytes, const std::string& prefix,
              Metadata& metadata);

}  // namespace limpid
