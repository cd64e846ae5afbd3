// The zip format (PKWARE APPNOTE 6.3.10, 4.3 and 4.4), for its reader and its writer:
//
//   local header, data, perhaps a data descriptor     one group for each record
//   directory                                         an entry for each record
//   end record                                        where the directory begins
//
// A size that does not fit 32 bits is replaced by 0xffffffff and moves to a zip64 field or record.
#pragma once

#include <zlib.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace limpid {

inline constexpr uint32_t kZipLocalSignature = 0x04034b50;
inline constexpr uint32_t kZipEntrySignature = 0x02014b50;
inline constexpr uint32_t kZipDescriptorSignature = 0x08074b50;
inline constexpr uint32_t kZip64EndSignature = 0x06064b50;
inline constexpr uint32_t kZip64LocatorSignature = 0x07064b50;
inline constexpr uint32_t kZipEndSignature = 0x06054b50;

inline constexpr uint64_t kZipLocalBytes = 30;
inline constexpr uint64_t kZipEntryBytes = 46;
inline constexpr uint64_t kZipDescriptorBytes = 16;  // with its signature; 24 in zip64
inline constexpr uint64_t kZip64DescriptorBytes = 24;
inline constexpr uint64_t kZip64EndBytes = 56;
inline constexpr uint64_t kZip64LocatorBytes = 20;
inline constexpr uint64_t kZipEndBytes = 22;

inline constexpr uint16_t kZipEncrypted = 1U << 0U;      // bits of the general purpose flags
inline constexpr uint16_t kZipHasDescriptor = 1U << 3U;  // sizes follow the data
inline constexpr uint16_t kZipUtf8 = 1U << 11U;

inline constexpr uint16_t kZipStored = 0;  // methods of compression
inline constexpr uint16_t kZipDeflated = 8;

inline constexpr uint16_t kZip64ExtraId = 1;
inline constexpr uint32_t kZipIn64 = 0xffffffff;  // "see the zip64 extra field"
inline constexpr uint16_t kZipCountIn64 = 0xffff;

// CRC-32 (ISO 3309), continued from `previous`: computed piece by piece, the result is the same as
// for all bytes at once.
inline uint32_t zip_crc32(std::span<const std::byte> bytes, uint32_t previous = 0) {
  return static_cast<uint32_t>(
      crc32_z(previous, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

}  // namespace limpid
