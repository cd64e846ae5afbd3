// Numbers of the zip format (PKWARE APPNOTE 6.3.10, 4.3 and 4.4), for its reader and its writer.
#pragma once

#include <cstdint>

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

inline constexpr uint16_t kZip64ExtraId = 1;
inline constexpr uint32_t kZipIn64 = 0xffffffff;  // "see the zip64 extra field"
inline constexpr uint16_t kZipCountIn64 = 0xffff;

}  // namespace limpid
