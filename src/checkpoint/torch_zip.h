// The zip archive that torch.save writes: stored records that can be mapped. Nothing is extracted;
// names are only compared. docs/formats/torch.md has the layout and all that is refused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace limpid {

struct ZipRecord {
  std::string_view name;             // in the archive's own bytes
  uint64_t header_offset = 0;        // of the local header
  uint64_t data_offset = 0;          // of the first byte
  std::span<const std::byte> bytes;  // the content
  uint32_t crc32 = 0;                // as the directory states it
};

class TorchZip {
 public:
  // Reads the directory and holds every local header and data descriptor against it. The records
  // must fill the archive without gap or overlap from its first byte to the directory, so that two
  // readers cannot see two archives in it. Both arguments must outlive the result. Throws
  // FormatError, and UnsupportedError for compressed or encrypted records.
  static TorchZip parse(std::string_view path, std::span<const std::byte> bytes);

  const std::vector<ZipRecord>& records() const { return records_; }  // in directory order
  const ZipRecord* find(std::string_view name) const;

  // Throws FormatError when the content is not what the directory's CRC-32 says.
  void check_content(const ZipRecord& record) const;

 private:
  std::string path_;
  std::vector<ZipRecord> records_;
  std::unordered_map<std::string_view, size_t> by_name_;
};

}  // namespace limpid
