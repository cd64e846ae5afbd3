// The content of a record: taken as it is, or decompressed.
#include <zlib.h>

#include <algorithm>
#include <limits>

#include "base/check.h"
#include "base/printable.h"
#include "checkpoint/zip_archive.h"
#include "checkpoint/zip_layout.h"

namespace limpid {
namespace {

// Decompresses raw deflate data, as zip stores it, in pieces of a fixed size. The caller decides
// how many pieces to take, so a small record that expands enormously (a "zip bomb") cannot fill the
// memory.
class Inflater {
 public:
  explicit Inflater(std::span<const std::byte> input) : input_(input), piece_(1 << 20) {
    // Negative window bits: neither a header nor a checksum around the data.
    LIMPID_CHECK(ResourceError, inflateInit2(&stream_, -MAX_WBITS) == Z_OK, "zlib cannot start");
  }
  ~Inflater() { inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  // The next bytes, valid until the next call; nothing when the data are damaged or have ended.
  std::span<const std::byte> next() {
    stream_.next_out = reinterpret_cast<Bytef*>(piece_.data());
    stream_.avail_out = static_cast<uInt>(piece_.size());
    int status = Z_OK;
    while (status == Z_OK && stream_.avail_out > 0) {
      if (stream_.avail_in == 0) {  // zlib counts in 32 bits
        const size_t n = std::min<size_t>(input_.size(), std::numeric_limits<uInt>::max());
        stream_.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(input_.data()));
        stream_.avail_in = static_cast<uInt>(n);
        input_ = input_.subspan(n);
      }
      status = inflate(&stream_, Z_NO_FLUSH);
    }
    return std::span(piece_).first(piece_.size() - stream_.avail_out);
  }

  // How many bytes of the input were not needed.
  uint64_t n_left() const { return stream_.avail_in + input_.size(); }

 private:
  std::span<const std::byte> input_;  // what zlib has not been given yet
  std::vector<std::byte> piece_;
  z_stream stream_{};
};

}  // namespace

// A stored record is passed on as one piece, a deflated one in pieces of 1 MiB. The CRC-32 is
// computed on the way and compared at the end.
void ZipArchive::extract(const ZipRecord& record,
                         const std::function<void(std::span<const std::byte>)>& take) const {
  uint32_t found = 0;
  uint64_t n_taken = 0;
  const auto pass_on = [&](std::span<const std::byte> piece) {
    found = zip_crc32(piece, found);
    n_taken += piece.size();
    take(piece);
  };
  const auto fail = [&](const std::string& problem) {
    throw FormatError(path_, record.data_offset, printable(record.name), problem);
  };
  if (record.is_deflated) {
    Inflater inflater(record.bytes);
    for (auto piece = inflater.next(); !piece.empty(); piece = inflater.next()) {
      if (piece.size() > record.size - n_taken)
        fail(fmt::format("is longer than {} bytes, its size in the directory", record.size));
      pass_on(piece);
    }
    if (n_taken != record.size)
      fail(fmt::format("only {} of {} bytes decompress", n_taken, record.size));
    if (inflater.n_left() != 0)
      fail(fmt::format("{} bytes follow its compressed data", inflater.n_left()));
  } else {
    pass_on(record.bytes);
  }
  if (found == record.crc32) return;
  fail(record.crc32 == 0
           ? "has no checksum, or the file is damaged; save it again with checksums"
           : fmt::format("the CRC-32 of its bytes is {:08x}, the archive says {:08x}: the file is "
                         "damaged, download it again",
                         found, record.crc32));
}

}  // namespace limpid
