// Advice to the system about mapped memory. Correctness does not depend on it.
#pragma once

#include <cstddef>
#include <span>

namespace limpid {

// Tells the system that the whole pages within `part` of a mapped file are not needed for now. They
// no longer count as memory of this process, and are read again when they are touched.
void leave_pages(std::span<const std::byte> part);

}  // namespace limpid
