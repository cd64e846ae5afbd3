// A NumPy array on disk, written row by row (format version 1.0: numpy.lib.format).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/atomic_file.h"

namespace limpid::cli {

// f32 [n_rows, n_cols], C order. The file gets its name when it is finished.
class NpyFile {
 public:
  // A `path` "-" is standard output, which gets all rows, in order, at the end. Throws
  // ResourceError.
  NpyFile(const std::string& path, int64_t n_rows, int64_t n_cols);

  // Rows may come in any order. `values` [n_cols].
  void write_row(int64_t row, std::span<const float> values);
  void finish();

 private:
  std::optional<AtomicFile> file_;  // nothing: standard output
  std::string header_;
  std::vector<float> rows_;  // for standard output alone
  int64_t n_cols_;
};

}  // namespace limpid::cli
