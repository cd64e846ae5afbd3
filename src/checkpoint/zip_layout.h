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

inline constexpr uint16_t kZipEncrypted = 1U << 0U;      // bits of the general purpose flags
inline constexpr uint16_t kZipHasDescriptor = 1U << 3U;  // sizes follow the data
inline constexpr uint16_t kZipUtf8 = 1U << 11U;

inline constexpr uint16_t kZipStored = 0;  // methods of compression
inline constexpr uint16_t kZipDeflated = 8;

inline constexpr uint16_t kZip64ExtraId = 1;
inline constexpr uint32_t kZipIn64 = 0xffffffff;  // "see the zip64 extra field"
inline constexpr uint16_t kZipCountIn64 = 0xffff;

// The headers as they are in a file: little-endian, without padding.
#pragma pack(push, 1)
struct ZipLocalHeader {  // then the name and the extra fields
  uint32_t signature = kZipLocalSignature;
  uint16_t version = 0, flags = 0, method = kZipStored;
  uint32_t time = 0;  // and date
  uint32_t crc32 = 0, compressed_size = 0, size = 0;
  uint16_t n_name = 0, n_extra = 0;
};
struct ZipEntryHeader {  // then the name, the extra fields and a comment
  uint32_t signature = kZipEntrySignature;
  uint16_t made_by = 0, version = 0, flags = 0, method = kZipStored;
  uint32_t time = 0;  // and date
  uint32_t crc32 = 0, compressed_size = 0, size = 0;
  uint16_t n_name = 0, n_extra = 0, n_comment = 0, disk = 0, attributes = 0;
  uint32_t external_attributes = 0, header_offset = 0;
};
struct Zip64EndRecord {
  uint32_t signature = kZip64EndSignature;
  uint64_t n_bytes = 44;  // that follow
  uint16_t made_by = 0, version = 0;
  uint32_t disk = 0, directory_disk = 0;
  uint64_t entries_here = 0, entries = 0, directory_size = 0, directory_offset = 0;
};
struct Zip64Locator {
  uint32_t signature = kZip64LocatorSignature, disk = 0;
  uint64_t offset = 0;  // of the zip64 end record
  uint32_t disks = 1;
};
struct ZipEndRecord {  // then a comment
  uint32_t signature = kZipEndSignature;
  uint16_t disk = 0, directory_disk = 0, entries_here = 0, entries = 0;
  uint32_t directory_size = 0, directory_offset = 0;
  uint16_t n_comment = 0;
};
#pragma pack(pop)
static_assert(sizeof(ZipLocalHeader) == 30 && sizeof(ZipEntryHeader) == 46 &&
              sizeof(Zip64EndRecord) == 56 && sizeof(Zip64Locator) == 20 &&
              sizeof(ZipEndRecord) == 22);

inline constexpr uint64_t kZipDescriptorBytes = 16;  // with its signature; 24 in zip64
inline constexpr uint64_t kZip64DescriptorBytes = 24;

// CRC-32 (ISO 3309), continued from `previous`: computed piece by piece, the result is the same as
// for all bytes at once.
inline uint32_t zip_crc32(std::span<const std::byte> bytes, uint32_t previous = 0) {
  return static_cast<uint32_t>(
      crc32_z(previous, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

}  // namespace limpid
