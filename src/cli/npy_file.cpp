#include "cli/npy_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstring>

#include "base/check.h"

namespace limpid::cli {

static_assert(std::endian::native == std::endian::little, "rows are written as they lie in memory");

NpyFile::NpyFile(std::string path, int64_t n_rows, int64_t n_cols)
    : path_(std::move(path)), n_cols_(n_cols) {
  file_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  LIMPID_CHECK(ResourceError, file_ >= 0, "cannot write {}: {}", path_, std::strerror(errno));
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
  const std::string start = std::string(preamble, kPreamble) + header;
  data_offset_ = start.size();
  write_at(start.data(), start.size(), 0);
}

NpyFile::~NpyFile() {
  if (file_ >= 0) close(file_);
  if (!finished_) unlink(path_.c_str());
}

void NpyFile::write_at(const void* data, size_t n_bytes, uint64_t offset) {
  const auto* at = static_cast<const char*>(data);
  while (n_bytes > 0) {
    const ssize_t n = pwrite(file_, at, n_bytes, static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    LIMPID_CHECK(ResourceError, n > 0, "cannot write {}: {}", path_, std::strerror(errno));
    at += n;
    n_bytes -= static_cast<size_t>(n);
    offset += static_cast<uint64_t>(n);
  }
}

void NpyFile::write_row(int64_t row, std::span<const float> values) {
  const uint64_t row_bytes = static_cast<uint64_t>(n_cols_) * sizeof(float);
  write_at(values.data(), values.size_bytes(),
           data_offset_ + static_cast<uint64_t>(row) * row_bytes);
}

void NpyFile::finish() { finished_ = true; }

}  // namespace limpid::cli
