// One file out of a zip archive (a Python wheel), streamed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace limpid::cli {

// Calls `take` with the decompressed bytes of `member`, piece by piece, and never with more than
// `max_bytes` in all. Stored and deflated members of archives without zip64 (PKWARE
// APPNOTE 6.3.10, 4.3). Throws FormatError (malformed, no such member, longer than max_bytes),
// UnsupportedError (other methods).
void read_zip_member(const std::string& archive, std::string_view member, uint64_t max_bytes,
                     const std::function<void(std::span<const std::byte>)>& take);

}  // namespace limpid::cli
