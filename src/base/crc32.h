// The checksum of zip archives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace limpid {

// CRC-32 (ISO 3309, polynomial 0xEDB88320 reflected) of `bytes`, continued from `previous`: the
// result for one piece after another is that for all at once.
uint32_t crc32(std::span<const std::byte> bytes, uint32_t previous = 0);

}  // namespace limpid
