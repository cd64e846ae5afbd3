// Reads zip archives: PyTorch checkpoints, whose records are stored and can be mapped, and Python
// wheels, whose records may be deflated. Nothing is unpacked to disk, and names are only compared,
// never used as paths. docs/formats/torch.md has the layout and everything that is refused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace limpid {

// One file in the archive.
struct ZipRecord {
  std::string_view name;             // a view into the archive
  uint64_t header_offset = 0;        // where the local header begins
  uint64_t data_offset = 0;          // where the data begin
  std::span<const std::byte> bytes;  // the data: deflated, or the content itself
  uint64_t size = 0;                 // bytes of the content
  uint32_t crc32 = 0;                // of the content, as the directory states it
  bool is_deflated = false;
};

// The compression methods that parse() accepts.
enum class ZipMethods : uint8_t { kStored, kStoredOrDeflated };

// The directory of an archive, checked against its records.
class ZipArchive {
 public:
  // Reads the directory and compares every local header and data descriptor with it. The records
  // must fill the archive without gap or overlap from its first byte to the directory. A zip file
  // states names and sizes twice, and readers that trust different copies see different files; here
  // both must agree. `path` and `bytes` must outlive the result. Throws FormatError, and
  // UnsupportedError for encrypted records and for methods other than `methods`.
  static ZipArchive parse(std::string_view path, std::span<const std::byte> bytes,
                          ZipMethods methods = ZipMethods::kStored);

  const std::vector<ZipRecord>& records() const { return records_; }  // in directory order
  // Returns null for an unknown name.
  const ZipRecord* find(std::string_view name) const;

  // Calls `take` with the content of a record, piece by piece, never with more than its size in
  // total. Throws FormatError when the content does not match the size or the CRC-32 of the
  // directory.
  void extract(const ZipRecord& record,
               const std::function<void(std::span<const std::byte>)>& take) const;
  // Throws as extract() does.
  void check_content(const ZipRecord& record) const {
    extract(record, [](auto) {});
  }

 private:
  std::string path_;
  std::vector<ZipRecord> records_;
  std::unordered_map<std::string_view, size_t> by_name_;
};

}  // namespace limpid
