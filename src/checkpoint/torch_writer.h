// Writes a state dictionary as torch.save does: a zip archive of stored records, each aligned to 64
// bytes, and a pickle of protocol 2 that torch.load(weights_only=True) takes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/atomic_file.h"
#include "tensor/tensor.h"

namespace limpid {

struct TorchEntry {
  std::string name;
  DType dtype = DType::kF32;  // no quantised type
  Shape shape;
  int64_t same_as = -1;  // the index of an earlier entry whose bytes these are (tied weights)
};

// Streams: the names and sizes first, then the bytes, in memory for the names only.
//   TorchWriter writer("consolidated.00.pth", entries);
//   for (…) writer.write(bytes);
//   writer.commit();
class TorchWriter {
 public:
  // Throws ArgumentError for a name that is empty or there twice and for a wrong `same_as`,
  // UnsupportedError for a quantised type, ResourceError.
  TorchWriter(const std::string& path, std::vector<TorchEntry> entries);

  // The next bytes: of all entries, in their order, row-major, but not of those that have
  // `same_as`. In pieces of any size. Throws ArgumentError for more than there should be,
  // ResourceError.
  void write(std::span<const std::byte> bytes);

  // Ends the archive, which then appears under its name. Throws ArgumentError when bytes are
  // missing.
  void commit();

 private:
  struct Record {
    std::string name;
    uint64_t size = 0;
    uint64_t header_offset = 0;
    uint32_t crc32 = 0;
  };

  void begin_record(const std::string& name, uint64_t size);
  void end_record();
  void add_record(const std::string& name, std::string_view content);
  void begin_next_tensor();
  void write_directory();

  AtomicFile file_;
  std::vector<TorchEntry> entries_;
  std::vector<Record> records_;  // the last is being written while `open_`
  bool open_ = false;
  uint64_t n_written_ = 0;  // of the open record
  size_t next_entry_ = 0;   // whose record has not begun
};

}  // namespace limpid
