#include "cli/npy_file.h"

#include <fmt/format.h>

#include <bit>

namespace limpid::cli {

static_assert(std::endian::native == std::endian::little, "rows are written as they lie in memory");

NpyFile::NpyFile(std::string path, int64_t n_rows, int64_t n_cols)
    : file_(std::move(path)), n_cols_(n_cols) {
  // Magic, version, length of the rest; the rest ends with a newline at a multiple of 64.
  std::string header = fmt::format(
      "{{'descr': '<f4', 'fortran_order': False, 'shape': ({}, {}), }}", n_rows, n_cols);
  constexpr size_t kPreamble = 10;
  const size_t n_total = (kPreamble + header.size() + 1 + 63) / 64 * 64;
  header.resize(n_total - kPreamble - 1, ' ');
  header += '\n';
  const auto n_header = static_cast<uint16_t>(header.size());
  const char preamble[kPreamble] = {'\x93',
                                    'N',
                                    'U',
                                    'M',
                                    'P',
                                    'Y',
                                    1,
                                    0,
                                    static_cast<char>(n_header & 0xff),
                                    static_cast<char>(n_header >> 8)};
  file_.write(std::string(preamble, kPreamble) + header);
}

void NpyFile::write_row(int64_t row, std::span<const float> values) {
  const uint64_t row_bytes = static_cast<uint64_t>(n_cols_) * sizeof(float);
  file_.write_at(file_.size() + static_cast<uint64_t>(row) * row_bytes,
                 {reinterpret_cast<const char*>(values.data()), values.size_bytes()});
}

void NpyFile::finish() { file_.commit(); }

}  // namespace limpid::cli
