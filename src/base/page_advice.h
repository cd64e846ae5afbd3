// Advice to the system about mapped memory. Nothing depends on its being taken.
#pragma once

#include <cstddef>
#include <span>

namespace limpid {

// The whole pages of `part` of a mapped file are not needed for now: they no longer count as memory
// of this process and are read again if they are touched.
void leave_pages(std::span<const std::byte> part);

}  // namespace limpid
