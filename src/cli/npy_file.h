// A NumPy array on disk, written row by row (format version 1.0: numpy.lib.format).
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/atomic_file.h"

namespace limpid::cli {

// f32 [n_rows, n_cols], C order. It appears under its name when it is finished.
class NpyFile {
 public:
  // Throws ResourceError.
  NpyFile(std::string path, int64_t n_rows, int64_t n_cols);

  // Rows may come in any order. `values` [n_cols].
  void write_row(int64_t row, std::span<const float> values);
  void finish();

 private:
  AtomicFile file_;
  int64_t n_cols_;
};

}  // namespace limpid::cli
