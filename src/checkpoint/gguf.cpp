#include "checkpoint/gguf.h"

#include <fmt/format.h>

#include "checkpoint/byte_reader.h"
#include "checkpoint/gguf_metadata.h"
#include "checkpoint/gguf_split.h"
#include "checkpoint/gguf_tensors.h"
#include "checkpoint/gguf_types.h"
#include "limpid/error.hpp"

namespace limpid {
namespace {

// The smallest possible entries. Metadata: the length of the key (8), a key of one byte, its type
// (4), a value of one byte. Tensors: the length of the name (8), a name of one byte, the number of
// dimensions (4), no dimensions, the type (4), the data offset (8).
constexpr uint64_t kMinMetadataBytes = 8 + 1 + 4 + 1;
constexpr uint64_t kMinTensorBytes = 8 + 1 + 4 + 4 + 8;

// Versions 2 and 3 differ only in that 3 allows big-endian files. The version of a big-endian file,
// read as little-endian, has its low 16 bits 0: this is how such a file is recognised.
uint32_t read_version(ByteReader& reader) {
  const uint64_t start = reader.offset();
  const auto version = reader.number<uint32_t>("header.version");
  if (version == 2 || version == 3) return version;
  if (version == 0) reader.fail(start, "header.version", "unknown version 0");
  if ((version & 0xffff) == 0) {
    throw UnsupportedError(fmt::format(
        "{}: at byte {}: header.version: a big-endian GGUF file; only little-endian files are read",
        reader.path(), start));
  }
  throw UnsupportedError(
      fmt::format("{}: at byte {}: header.version: GGUF version {}; versions 2 and 3 are read",
                  reader.path(), start, version));
}

// Reads a count and checks that so many entries fit in the rest of the file. A damaged count cannot
// cause a large allocation that way.
uint64_t read_count(ByteReader& reader, const char* field, uint64_t min_bytes) {
  const uint64_t start = reader.offset();
  const auto count = reader.number<uint64_t>(field);
  if (count > reader.remaining() / min_bytes) {
    reader.fail(start, field,
                fmt::format("{} entries do not fit in the {} bytes left of {}; is the download "
                            "complete?",
                            count, reader.remaining(), reader.size()));
  }
  return count;
}

}  // namespace

GgufFile parse_gguf(const std::string& path, std::span<const std::byte> bytes) {
  ByteReader reader(path, bytes);
  if (const auto magic = reader.take(kGgufMagic.size(), "header.magic"); magic != kGgufMagic) {
    reader.fail(0, "header.magic", fmt::format("'{}' is not GGUF", printable(magic)));
  }
  GgufFile file;
  file.version = read_version(reader);
  const uint64_t n_tensors = read_count(reader, "header.tensor_count", kMinTensorBytes);
  const uint64_t n_metadata = read_count(reader, "header.metadata_count", kMinMetadataBytes);
  GgufMetadata metadata = read_gguf_metadata(reader, n_metadata);
  file.metadata = std::move(metadata.values);
  file.alignment = metadata.alignment;
  file.tensors = read_gguf_tensors(reader, n_tensors, file.alignment, bytes);
  return file;
}

Checkpoint open_gguf(const std::string& path) {
  auto mapped = MappedFile::open(path);
  GgufFile first = parse_gguf(path, mapped->bytes());
  Checkpoint checkpoint;
  checkpoint.path = path;
  checkpoint.format = fmt::format("gguf v{}", first.version);
  checkpoint.files.push_back(std::move(mapped));
  append_gguf_tensors(checkpoint, path, first.tensors);
  checkpoint.metadata = std::move(first.metadata);
  open_other_gguf_parts(checkpoint);
  return checkpoint;
}

}  // namespace limpid
