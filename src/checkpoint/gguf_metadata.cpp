#include <fmt/format.h>

#include <bit>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/printable.h"
#include "checkpoint/gguf_sections.h"
#include "checkpoint/gguf_types.h"

namespace limpid {
namespace {

// Limits on what a file may ask for. kLongestKey is in the specification. The others are Limpid's,
// far above what real models need (the largest vocabularies have some 260,000 tokens).
constexpr uint64_t kLongestKey = 65535;
constexpr uint64_t kLongestString = uint64_t{1} << 28;
constexpr uint64_t kLongestArray = uint64_t{1} << 26;
constexpr uint32_t kLargestAlignment = 1u << 24;
constexpr int kDeepestArray = 4;

// Reads a type number into `type` and returns what is known of that type.
const GgufTypeInfo& read_type(ByteReader& reader, const std::string& field, GgufType& type) {
  const uint64_t start = reader.offset();
  const auto id = reader.number<uint32_t>(field);
  const GgufTypeInfo* info = gguf_type_info(id);
  if (info == nullptr) reader.fail(start, field, "unknown metadata type {}", id);
  type = static_cast<GgufType>(id);
  return *info;
}

// A string is a length (u64) and its bytes. The result is a view into the file.
std::string_view read_string(ByteReader& reader, std::string_view field) {
  return reader.take(reader.count(field, 1, "bytes of text", kLongestString), field);
}

bool read_bool(ByteReader& reader, std::string_view field) {
  const uint64_t start = reader.offset();
  const auto value = reader.number<uint8_t>(field);
  if (value > 1) reader.fail(start, field, "a boolean is 0 or 1, not {}", value);
  return value == 1;
}

// Reads `count` numbers that the file holds as File. Metadata keep integers as int64_t and the
// others as double. A u64 in an array that does not fit is refused.
template <typename File>
auto read_numbers(ByteReader& reader, std::string_view field, uint64_t count) {
  std::vector<std::conditional_t<std::is_integral_v<File>, int64_t, double>> values(count);
  for (auto& value : values) {
    const auto number = reader.number<File>(field);
    if constexpr (std::is_same_v<File, uint64_t>) {
      LIMPID_CHECK(UnsupportedError, std::in_range<int64_t>(number),
                   "{}: {} holds {}, beyond 63 bits", reader.path(), field, number);
    }
    // An i8 is a number here, not a character. NOLINTNEXTLINE(bugprone-signed-char-misuse)
    value = static_cast<std::remove_reference_t<decltype(value)>>(number);
  }
  return values;
}

// Reads an array: type of the elements, count, elements. The array [1, 2] of u32 is
//
//   04 00 00 00  02 00 00 00 00 00 00 00  01 00 00 00  02 00 00 00
//
// Arrays may contain arrays, `depth` levels down; a limit on the depth bounds the recursion.
MetadataValue read_array(ByteReader& reader, const std::string& field, int depth) {
  const uint64_t start = reader.offset();
  if (depth >= kDeepestArray) {
    reader.fail(start, field, "arrays nest deeper than {}", kDeepestArray);
  }
  GgufType type{};
  const GgufTypeInfo& element = read_type(reader, field, type);
  const uint64_t count = reader.count(
      field, element.min_bytes, fmt::format("elements of type {}", element.name), kLongestArray);
  MetadataValue::Storage storage;
  if (type == GgufType::kArray) {
    MetadataValue::Array values;
    for (uint64_t i = 0; i < count; ++i) values.push_back(read_array(reader, field, depth + 1));
    storage = std::move(values);
  } else if (type == GgufType::kString) {
    std::vector<std::string> values(count);
    for (std::string& value : values) value = read_string(reader, field);
    storage = std::move(values);
  } else if (type == GgufType::kBool) {
    std::vector<bool> values(count);
    for (uint64_t i = 0; i < count; ++i) values[i] = read_bool(reader, field);
    storage = std::move(values);
  } else {
    visit_gguf_number(
        type, [&]<typename File>(File) { storage = read_numbers<File>(reader, field, count); });
  }
  return {std::move(storage), fmt::format("array of {}", element.name)};
}

// Reads one value. Integers are widened to int64_t (u64 stays as it is) and f32 to double;
// `type_name` remembers the type in the file, so that a written copy has the same types.
MetadataValue read_value(ByteReader& reader, const std::string& field, GgufType type) {
  if (type == GgufType::kArray) return read_array(reader, field, 0);
  MetadataValue::Storage storage;
  if (type == GgufType::kString) {
    storage = std::string(read_string(reader, field));
  } else if (type == GgufType::kBool) {
    storage = read_bool(reader, field);
  } else {
    visit_gguf_number(type, [&]<typename File>(File) {
      if constexpr (std::is_same_v<File, uint64_t>) {
        storage = reader.number<uint64_t>(field);
      } else {
        storage = read_numbers<File>(reader, field, 1).front();
      }
    });
  }
  return {std::move(storage), std::string(gguf_type_info(static_cast<uint32_t>(type))->name)};
}

// general.alignment moves all tensors, so it must be right before the table is read. At least 8
// keeps every element of every type at an address that its type allows.
void check_alignment(const ByteReader& reader, uint64_t offset, const MetadataValue& value) {
  if (value.type_name != "u32") {
    reader.fail(offset, kGgufAlignmentKey, "is {}, must be u32", value.type_name);
  }
  const auto alignment = static_cast<uint32_t>(std::get<int64_t>(value.value));
  if (alignment < 8 || alignment > kLargestAlignment || !std::has_single_bit(alignment)) {
    reader.fail(offset, kGgufAlignmentKey, "{} is not a power of two from 8 to {}", alignment,
                kLargestAlignment);
  }
}

}  // namespace

std::string read_gguf_name(ByteReader& reader, const std::string& field, uint64_t longest) {
  const uint64_t start = reader.offset();
  const auto length = reader.number<uint64_t>(field);
  if (length == 0 || length > longest) {
    reader.fail(start, field, "has {} bytes, must have 1 to {}", length, longest);
  }
  const std::string_view name = reader.take(length, field);
  if (!is_clean_utf8(name)) {
    reader.fail(start, field, "'{}' is not UTF-8 text without NUL", printable(name));
  }
  return std::string(name);
}

// Errors in a value name its key; errors in a key can only name its index.
Metadata read_gguf_metadata(ByteReader& reader, uint64_t count) {
  Metadata metadata;
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t start = reader.offset();
    const std::string key_field = fmt::format("metadata[{}].key", i);
    std::string key = read_gguf_name(reader, key_field, kLongestKey);
    if (metadata.contains(key)) {
      reader.fail(start, key_field, "'{}' occurs twice", printable(key));
    }
    const std::string field = printable(key);
    const uint64_t type_offset = reader.offset();
    GgufType type{};
    read_type(reader, field, type);
    MetadataValue value = read_value(reader, field, type);
    if (key == kGgufAlignmentKey) check_alignment(reader, type_offset, value);
    metadata.set(std::move(key), std::move(value));
  }
  return metadata;
}

}  // namespace limpid
