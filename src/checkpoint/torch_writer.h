// Writes a state dictionary as torch.save does: a zip archive of stored records, each aligned to 64
// bytes, with a pickle of protocol 2 that torch.load(weights_only=True) accepts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "base/atomic_file.h"
#include "tensor/tensor.h"

namespace limpid {

// A tensor of the state dictionary to be written.
struct TorchEntry {
  std::string name;
  DType dtype = DType::kF32;  // not a quantised type
  Shape shape;
  int64_t same_as = -1;  // index of an earlier entry that shares its bytes (tied weights)
};

// Writes one file as a stream: names and shapes first, then the bytes. Only the names are held in
// memory.
//
//   TorchWriter writer("consolidated.00.pth", entries);
//   for (…) writer.write(bytes);
//   writer.commit();
class TorchWriter {
 public:
  // The file holds the state dictionary or, with `beside`, {"model": the state dictionary} and what
  // `beside` adds to it: an object of objects, numbers and text, as in nanoGPT's {"model_args":
  // {"n_layer": 4}}. Throws ArgumentError for a name that is empty or used twice and for a wrong
  // `same_as`, UnsupportedError for a quantised type, ResourceError.
  TorchWriter(const std::string& path, std::vector<TorchEntry> entries,
              const nlohmann::ordered_json* beside = nullptr);

  // Appends bytes of the entries, in their order and row-major, in pieces of any size. Entries with
  // `same_as` have no bytes of their own. Throws ArgumentError for more bytes than the entries
  // have, ResourceError.
  void write(std::span<const std::byte> bytes);

  // Ends the archive and gives it its name. Throws ArgumentError when bytes are missing.
  void commit();

 private:
  // What the directory at the end of the archive says about a record.
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
  std::vector<Record> records_;  // while `open_`, the last one is being written
  bool open_ = false;
  uint64_t n_written_ = 0;  // bytes of the open record so far
  size_t next_entry_ = 0;   // the first entry whose record has not begun
};

}  // namespace limpid
