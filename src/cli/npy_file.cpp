// Rows come in the order in which the model computes them, and lie in the file in the order that
// the user asked for (--positions -1,0). In a file each row is written to its place at once, so
// that the array may be larger than the memory.
#include "cli/npy_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "cli/output.h"
#include "cli/output_path.h"

namespace limpid::cli {

static_assert(std::endian::native == std::endian::little, "rows are written as they lie in memory");

NpyFile::NpyFile(const std::string& path, int64_t n_rows, int64_t n_cols) : n_cols_(n_cols) {
  if (path != "-") file_.emplace(at_end_of_links(path));
  // "\x93NUMPY", the version 1.0, the length of the rest in two bytes, and a Python dictionary as
  // text: {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }. Blanks and a newline fill it
  // up to a multiple of 64, so that the array that follows is aligned.
  std::string header = fmt::format(
      "{{'descr': '<f4', 'fortran_order': False, 'shape': ({}, {}), }}", n_rows, n_cols);
  constexpr size_t kPreamble = 10;
  const size_t n_total = (kPreamble + header.size() + 1 + 63) / 64 * 64;
  header.resize(n_total - kPreamble - 1, ' ');
  header += '\n';
  header_ = std::string("\x93NUMPY\1\0", 8);
  header_ += {static_cast<char>(header.size() & 0xff), static_cast<char>(header.size() >> 8)};
  header_ += header;
  if (file_) {
    file_->write(header_);
  } else {
    rows_.resize(static_cast<size_t>(n_rows * n_cols));
  }
}

// A file is written at the row's place; standard output cannot seek, so its rows wait.
void NpyFile::write_row(int64_t row, std::span<const float> values) {
  if (!file_) {
    std::ranges::copy(values, rows_.begin() + row * n_cols_);
    return;
  }
  const uint64_t row_bytes = static_cast<uint64_t>(n_cols_) * sizeof(float);
  file_->write_at(header_.size() + static_cast<uint64_t>(row) * row_bytes,
                  {reinterpret_cast<const char*>(values.data()), values.size_bytes()});
}

// The file gets its name only now, so a program that waits for it never sees an incomplete array.
void NpyFile::finish() {
  if (file_) return file_->commit();
  write_out(header_);
  write_out({reinterpret_cast<const char*>(rows_.data()), rows_.size() * sizeof(float)});
}

}  // namespace limpid::cli
