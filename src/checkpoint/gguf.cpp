#include "checkpoint/gguf.h"

#include <utility>

#include "base/check.h"
#include "base/paths.h"
#include "base/printable.h"
#include "checkpoint/byte_reader.h"
#include "checkpoint/gguf_part.h"
#include "checkpoint/gguf_sections.h"
#include "checkpoint/gguf_types.h"

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
  LIMPID_CHECK(
      UnsupportedError, (version & 0xffff) != 0,
      "{}: at byte {}: header.version: a big-endian GGUF file; only little-endian files are read",
      reader.path(), start);
  throw UnsupportedError(
      fmt::format("{}: at byte {}: header.version: GGUF version {}; versions 2 and 3 are read",
                  reader.path(), start, version));
}

// A key that the file must have when its model is split.
int64_t required_integer(const Metadata& metadata, const std::string& path, const char* key) {
  const MetadataValue* found = metadata.find(key);
  if (found == nullptr) throw_format_error(path, key, "is missing from a part of a split model");
  if (const auto* value = std::get_if<int64_t>(&found->value);
      value != nullptr && std::in_range<uint32_t>(*value)) {
    return *value;
  }
  throw_format_error(path, key, "must be a non-negative integer of at most 32 bits");
}

// Fails when `path` is not named as the first of `count` parts.
GgufPart first_part(const std::string& path, int64_t count) {
  const auto part = parse_gguf_part(path);
  if (part && part->number == 1 && part->count == count) return *part;
  throw_format_error(path, "split.count",
                     "the first part of {} must be named NAME-00001-of-{:05}.gguf; keep the names "
                     "it was published with",
                     count, count);
}

// A part must have the number that its file name says, and know of as many parts as the first one.
void check_part(const GgufFile& part, const std::string& path, int64_t number, int64_t count) {
  const int64_t part_number = required_integer(part.metadata, path, "split.no");
  if (part_number != number) {
    throw_format_error(path, "split.no", "{}, expected {} from the file's name", part_number,
                       number);
  }
  const int64_t part_count = required_integer(part.metadata, path, "split.count");
  if (part_count != count) {
    throw_format_error(path, "split.count", "{}, but the first part says {}", part_count, count);
  }
}

// Adds the tensors of the file `path` to `checkpoint`. No name may be there already.
void append_gguf_tensors(Checkpoint& checkpoint, const std::string& path,
                         std::span<const GgufTensor> tensors) {
  for (const GgufTensor& tensor : tensors) {
    if (!checkpoint.tensors.try_emplace(tensor.name, tensor.view).second) {
      throw FormatError(path, tensor.info_offset,
                        fmt::format("tensor '{}'", printable(tensor.name)),
                        "is already in an earlier part of the model");
    }
    checkpoint.tensor_order.push_back(tensor.name);
  }
}

// Opens the other parts of a model that is split over several files,
// NAME-00001-of-00003.gguf and so on. Each part is a complete GGUF file and states split.no (from
// 0), split.count and split.tensors.count (the tensors of all parts); the metadata of the model is
// in the first part, which `checkpoint` already holds. The parts are opened in the order of their
// numbers, under names that follow from the first part's. In the end the tensors of all parts must
// be as many as the first part says.
void open_other_gguf_parts(Checkpoint& checkpoint) {
  const std::string first_path = checkpoint.path;
  if (!checkpoint.metadata.contains("split.count")) return;
  const int64_t count = required_integer(checkpoint.metadata, first_path, "split.count");
  if (count <= 1) return;
  const int64_t number = required_integer(checkpoint.metadata, first_path, "split.no");
  if (number != 0) {
    throw_format_error(first_path, "split.no",
                       "this is part {} of {}; name the first one (-00001-of-{:05}.gguf)",
                       number + 1, count, count);
  }
  for (GgufPart file = first_part(first_path, count); ++file.number <= file.count;) {
    const std::string path = file.name();
    LIMPID_CHECK(ResourceError, is_there(path),
                 "{} is missing: part {} of {} of {}; download it too", path, file.number, count,
                 first_path);
    auto mapped = MappedFile::open(path);
    const GgufFile part = parse_gguf(path, mapped->bytes());
    check_part(part, path, file.number - 1, count);
    checkpoint.files.push_back(std::move(mapped));
    append_gguf_tensors(checkpoint, path, part.tensors);
  }
  const int64_t n_tensors =
      required_integer(checkpoint.metadata, first_path, "split.tensors.count");
  if (n_tensors != static_cast<int64_t>(checkpoint.tensors.size())) {
    throw_format_error(first_path, "split.tensors.count", "{}, but the {} parts hold {}", n_tensors,
                       count, checkpoint.tensors.size());
  }
}

}  // namespace

GgufFile parse_gguf(const std::string& path, std::span<const std::byte> bytes) {
  ByteReader reader(path, bytes);
  if (const auto magic = reader.take(kGgufMagic.size(), "header.magic"); magic != kGgufMagic) {
    reader.fail(0, "header.magic", "'{}' is not GGUF", printable(magic));
  }
  GgufFile file;
  file.version = read_version(reader);
  const uint64_t n_tensors = reader.count("header.tensor_count", kMinTensorBytes);
  const uint64_t n_metadata = reader.count("header.metadata_count", kMinMetadataBytes);
  file.metadata = read_gguf_metadata(reader, n_metadata);
  const auto alignment = file.metadata.integer(kGgufAlignmentKey).value_or(kGgufDefaultAlignment);
  file.tensors = read_gguf_tensors(reader, n_tensors, static_cast<uint32_t>(alignment));
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
