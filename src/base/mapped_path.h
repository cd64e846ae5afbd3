// Finds the file behind an address, for a handler of SIGBUS. The kernel raises this signal when a
// program reads bytes of a map that the file no longer has.
#pragma once

namespace limpid {

// Returns the path of the MappedFile that contains `address`, or null. The text is valid as long as
// the map. Async-signal-safe.
const char* mapped_path_of(const void* address) noexcept;

// The message for such a file, after its path.
inline constexpr char kBecameUnreadable[] =
    " became unreadable while it was in use: it was truncated, or its disk failed";

}  // namespace limpid
