// Which file lies behind an address, for a handler of SIGBUS: the kernel raises that signal when
// bytes of a map are read that are no longer in the file.
#pragma once

namespace limpid {

// The path of the MappedFile that holds `address`, or null. The text lives as long as the map.
// Async-signal-safe.
const char* mapped_path_of(const void* address) noexcept;

// What to say of that file, after its path.
inline constexpr char kBecameUnreadable[] =
    " became unreadable while it was in use: it was truncated, or its disk failed";

}  // namespace limpid
