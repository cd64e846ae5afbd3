#include "checkpoint/gguf_split.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>

#include "checkpoint/byte_reader.h"
#include "limpid/error.hpp"

namespace limpid {
namespace {

// Errors about parts have no offset: the fault is in how the files fit together.
[[noreturn]] void fail(const std::string& path, const char* field, const std::string& problem) {
  throw FormatError(path, FormatError::kNoOffset, field, problem);
}

// A key that the file must have when its model is split.
int64_t required_integer(const Metadata& metadata, const std::string& path, const char* key) {
  const MetadataValue* found = metadata.find(key);
  if (found == nullptr) fail(path, key, "is missing from a part of a split model");
  if (const auto* value = std::get_if<int64_t>(&found->value); value != nullptr && *value >= 0) {
    return *value;
  }
  fail(path, key, "must be a non-negative integer of at most 32 bits");
}

// Returns `base`, where the parts are named base-00001-of-0000N.gguf. Fails when `path` is not
// named as the first of `count` parts.
std::string base_of_first_part(const std::string& path, int64_t count) {
  const std::string suffix = fmt::format("-00001-of-{:05}.gguf", count);
  if (!path.ends_with(suffix)) {
    fail(path, "split.count",
         fmt::format(
             "the first part of {} must be named NAME{}; keep the names it was published with",
             count, suffix));
  }
  return path.substr(0, path.size() - suffix.size());
}

// A part must have the number that its file name says, and know of as many parts as the first one.
void check_part(const GgufFile& part, const std::string& path, int64_t number, int64_t count) {
  const int64_t part_number = required_integer(part.metadata, path, "split.no");
  if (part_number != number) {
    fail(path, "split.no",
         fmt::format("{}, expected {} from the file's name", part_number, number));
  }
  const int64_t part_count = required_integer(part.metadata, path, "split.count");
  if (part_count != count) {
    fail(path, "split.count", fmt::format("{}, but the first part says {}", part_count, count));
  }
}

}  // namespace

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

// The parts are opened in the order of their numbers, under names that follow from the first
// part's. In the end the tensors of all parts must be as many as the first part says.
void open_other_gguf_parts(Checkpoint& checkpoint) {
  const std::string first_path = checkpoint.path;
  if (!checkpoint.metadata.contains("split.count")) return;
  const int64_t count = required_integer(checkpoint.metadata, first_path, "split.count");
  if (count <= 1) return;
  const int64_t number = required_integer(checkpoint.metadata, first_path, "split.no");
  if (number != 0) {
    fail(first_path, "split.no",
         fmt::format("this is part {} of {}; name the first one (-00001-of-{:05}.gguf)", number + 1,
                     count, count));
  }
  const std::string base = base_of_first_part(first_path, count);
  for (int64_t i = 1; i < count; ++i) {
    const std::string path = fmt::format("{}-{:05}-of-{:05}.gguf", base, i + 1, count);
    std::error_code ignored;
    if (!std::filesystem::exists(path, ignored)) {
      throw ResourceError(fmt::format("{} is missing: part {} of {} of {}; download it too", path,
                                      i + 1, count, first_path));
    }
    auto mapped = MappedFile::open(path);
    const GgufFile part = parse_gguf(path, mapped->bytes());
    check_part(part, path, i, count);
    checkpoint.files.push_back(std::move(mapped));
    append_gguf_tensors(checkpoint, path, part.tensors);
  }
  const int64_t n_tensors =
      required_integer(checkpoint.metadata, first_path, "split.tensors.count");
  if (n_tensors != static_cast<int64_t>(checkpoint.tensors.size())) {
    fail(first_path, "split.tensors.count",
         fmt::format("{}, but the {} parts hold {}", n_tensors, count, checkpoint.tensors.size()));
  }
}

}  // namespace limpid
