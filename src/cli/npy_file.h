// A NumPy array on disk, written row by row (format version 1.0: numpy.lib.format).
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace limpid::cli {

// f32 [n_rows, n_cols], C order. A file that was not finished is removed.
class NpyFile {
 public:
  // Throws ResourceError.
  NpyFile(std::string path, int64_t n_rows, int64_t n_cols);
  ~NpyFile();
  NpyFile(const NpyFile&) = delete;
  NpyFile& operator=(const NpyFile&) = delete;

  // Rows may come in any order. `values` [n_cols].
  void write_row(int64_t row, std::span<const float> values);
  void finish();

 private:
  void write_at(const void* data, size_t n_bytes, uint64_t offset);

  std::string path_;
  int64_t n_cols_;
  uint64_t data_offset_ = 0;
  int file_ = -1;
  bool finished_ = false;
};

}  // namespace limpid::cli
