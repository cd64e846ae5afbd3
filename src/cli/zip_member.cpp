#include "cli/zip_member.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <vector>

#include "base/check.h"
#include "base/mapped_file.h"

namespace limpid::cli {
namespace {

constexpr uint32_t kEndSignature = 0x06054b50;
constexpr uint32_t kEntrySignature = 0x02014b50;
constexpr uint32_t kLocalSignature = 0x04034b50;
constexpr uint64_t kEndBytes = 22;
constexpr uint64_t kEntryBytes = 46;
constexpr uint64_t kLocalBytes = 30;
constexpr uint16_t kStored = 0;
constexpr uint16_t kDeflated = 8;

// Little-endian fields of the archive, every access inside it.
class Archive {
 public:
  explicit Archive(const std::string& path) : file_(MappedFile::open(path)) {}

  [[noreturn]] void fail(uint64_t offset, const char* field, const std::string& problem) const {
    throw FormatError(file_->path(), offset, field, problem);
  }
  std::span<const std::byte> bytes(uint64_t offset, uint64_t n, const char* field) const {
    if (offset > file_->size() || n > file_->size() - offset) {
      fail(offset, field, "the archive ends before it");
    }
    return file_->bytes().subspan(offset, n);
  }
  uint64_t number(uint64_t offset, int n_bytes, const char* field) const {
    const auto source = bytes(offset, static_cast<uint64_t>(n_bytes), field);
    uint64_t value = 0;
    for (int i = n_bytes; i-- > 0;) value = (value << 8) | std::to_integer<uint64_t>(source[i]);
    return value;
  }
  uint64_t size() const { return file_->size(); }

 private:
  std::shared_ptr<const MappedFile> file_;
};

struct Member {
  uint16_t method;
  std::span<const std::byte> compressed;
};

// The record at the end, found from behind: a comment of up to 65,535 bytes may follow it.
uint64_t find_end_record(const Archive& archive) {
  const uint64_t earliest =
      archive.size() > 65'535 + kEndBytes ? archive.size() - 65'535 - kEndBytes : 0;
  for (uint64_t offset = archive.size() < kEndBytes ? 0 : archive.size() - kEndBytes + 1;
       offset-- > earliest;) {
    if (archive.number(offset, 4, "end record") == kEndSignature) return offset;
  }
  archive.fail(archive.size(), "end of the archive",
               "is missing; the file is no zip archive, or is cut short");
}

Member find_member(const Archive& archive, std::string_view name) {
  const uint64_t end = find_end_record(archive);
  const uint64_t n_entries = archive.number(end + 10, 2, "number of entries");
  uint64_t offset = archive.number(end + 16, 4, "start of the directory");
  for (uint64_t i = 0; i < n_entries; ++i) {
    if (archive.number(offset, 4, "directory entry") != kEntrySignature) {
      archive.fail(offset, "directory entry", "wrong signature");
    }
    const uint64_t name_bytes = archive.number(offset + 28, 2, "name length");
    const auto stored_name = archive.bytes(offset + kEntryBytes, name_bytes, "name");
    if (std::string_view(reinterpret_cast<const char*>(stored_name.data()), name_bytes) == name) {
      const uint64_t local = archive.number(offset + 42, 4, "local header offset");
      if (archive.number(local, 4, "local header") != kLocalSignature) {
        archive.fail(local, "local header", "wrong signature");
      }
      const uint64_t data = local + kLocalBytes + archive.number(local + 26, 2, "name length") +
                            archive.number(local + 28, 2, "extra length");
      return {static_cast<uint16_t>(archive.number(offset + 10, 2, "method")),
              archive.bytes(data, archive.number(offset + 20, 4, "compressed size"), "data")};
    }
    offset += kEntryBytes + name_bytes + archive.number(offset + 30, 2, "extra length") +
              archive.number(offset + 32, 2, "comment length");
  }
  archive.fail(end, "directory", fmt::format("holds no {}", name));
}

class Inflater {
 public:
  Inflater() {
    // Negative window bits: raw deflate, as zip stores it.
    LIMPID_CHECK(ResourceError, inflateInit2(&stream_, -MAX_WBITS) == Z_OK, "zlib cannot start");
  }
  ~Inflater() { inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  z_stream& stream() { return stream_; }

 private:
  z_stream stream_{};
};

}  // namespace

void read_zip_member(const std::string& path, std::string_view name, uint64_t max_bytes,
                     const std::function<void(std::span<const std::byte>)>& take) {
  const Archive archive(path);
  const Member member = find_member(archive, name);
  const auto too_long = [&] {
    archive.fail(FormatError::kNoOffset, "data",
                 fmt::format("{} is longer than {} bytes", name, max_bytes));
  };
  if (member.method == kStored) {
    if (member.compressed.size() > max_bytes) too_long();
    take(member.compressed);
    return;
  }
  LIMPID_CHECK(UnsupportedError, member.method == kDeflated,
               "{}: {} is compressed by method {}; only stored and deflated members are read", path,
               name, member.method);
  Inflater inflater;
  z_stream& stream = inflater.stream();
  // zlib takes 32-bit counts; a compressed size of zip without zip64 fits one.
  stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(member.compressed.data()));
  stream.avail_in = static_cast<uInt>(member.compressed.size());
  std::vector<std::byte> piece(1 << 20);
  uint64_t n_taken = 0;
  for (int status = Z_OK; status != Z_STREAM_END;) {
    stream.next_out = reinterpret_cast<Bytef*>(piece.data());
    stream.avail_out = static_cast<uInt>(piece.size());
    status = inflate(&stream, Z_NO_FLUSH);
    if (status != Z_OK && status != Z_STREAM_END) {
      archive.fail(FormatError::kNoOffset, "data", fmt::format("{} does not decompress", name));
    }
    const size_t n = piece.size() - stream.avail_out;
    n_taken += n;
    if (n_taken > max_bytes) too_long();
    take({piece.data(), n});
  }
}

}  // namespace limpid::cli
