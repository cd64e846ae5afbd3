#include <fmt/format.h>

#include <array>
#include <iterator>
#include <string>
#include <unordered_set>

#include "base/check.h"
#include "base/checked.h"
#include "base/printable.h"
#include "checkpoint/gguf_sections.h"
#include "checkpoint/gguf_types.h"

namespace limpid {
namespace {

// A table entry before its data has been checked.
struct Entry : GgufTensor {
  std::string label;           // "tensor 'name'"
  uint64_t offset_offset = 0;  // where the file states `offset`, for errors
  uint64_t offset = 0;         // of the data, from the start of the data section
};

// The file lists the innermost dimension first; Shape lists it last. A matrix of 32,000 rows by
// 2,048 columns is [2048, 32000] in the file and {32000, 2048} in Limpid.
Shape read_shape(ByteReader& reader, const std::string& label) {
  const uint64_t start = reader.offset();
  const auto n_dims = reader.number<uint32_t>(label + ".n_dims");
  if (n_dims > kGgufMaxDims) {
    reader.fail(start, label + ".n_dims", "{}, at most {}", n_dims, kGgufMaxDims);
  }
  std::array<int64_t, kGgufMaxDims> dims{};
  int64_t n_elements = 1;
  for (uint32_t i = 0; i < n_dims; ++i) {
    const std::string field = fmt::format("{}.dims[{}]", label, i);
    const uint64_t dim_offset = reader.offset();
    const auto dim = reader.number<int64_t>(field);
    if (dim < 1) reader.fail(dim_offset, field, "{}, must be positive", dim);
    const auto product = checked_mul(n_elements, dim);
    if (!product) reader.fail(dim_offset, field, "{} gives too many elements", dim);
    n_elements = *product;
    dims[n_dims - 1 - i] = dim;
  }
  return Shape(std::span<const int64_t>(dims.data(), n_dims));
}

// An unknown number is a damaged file; a known type that Limpid does not read is a limit of Limpid.
DType read_dtype(ByteReader& reader, const std::string& label) {
  const uint64_t start = reader.offset();
  const auto id = reader.number<uint32_t>(label + ".type");
  const GgmlType* type = ggml_type(id);
  if (type == nullptr) reader.fail(start, label + ".type", "unknown tensor type {}", id);
  LIMPID_CHECK(UnsupportedError, type->dtype.has_value(),
               "{}: at byte {}: {} has type {}, which is not read; obtain the model in one of {}",
               reader.path(), start, label, type->name, readable_ggml_types());
  return *type->dtype;
}

// Checks that the bytes of the tensor's data can be counted. Quantised types store blocks along a
// row (Q4_0: 32 elements in 18 bytes), so a row must be a whole number of blocks.
void check_size(const ByteReader& reader, const Entry& entry) {
  const DTypeInfo& info = dtype_info(entry.view.dtype);
  const Shape& shape = entry.view.shape;
  if (shape.cols() % info.block_size != 0) {
    reader.fail(entry.info_offset, entry.label + ".dims[0]",
                "{} is not a multiple of the {} elements in a block of {}", shape.cols(),
                info.block_size, info.name);
  }
  const uint64_t n_blocks = static_cast<uint64_t>(shape.n_elements()) / info.block_size;
  if (!checked_mul<uint64_t>(n_blocks, info.block_bytes)) {
    reader.fail(entry.info_offset, entry.label, "{} {} has more than 2^64 bytes", info.name,
                shape.to_string());
  }
}

// One entry: name, dimensions, type, offset. The data are checked afterwards.
Entry read_entry(ByteReader& reader, uint64_t index) {
  Entry entry;
  entry.info_offset = reader.offset();
  entry.name = read_gguf_name(reader, fmt::format("tensor[{}].name", index), kGgufLongestName);
  entry.label = fmt::format("tensor '{}'", printable(entry.name));
  entry.view.shape = read_shape(reader, entry.label);
  entry.view.dtype = read_dtype(reader, entry.label);
  check_size(reader, entry);
  entry.offset_offset = reader.offset();
  entry.offset = reader.number<uint64_t>(entry.label + ".offset");
  return entry;
}

// Writers place tensors one after another, each padded to the alignment. Limpid requires exactly
// that: then no two tensors overlap, and the end of the last one proves that all of them are inside
// the file.
void check_offset(const ByteReader& reader, const Entry& entry, uint64_t expected,
                  uint32_t alignment) {
  if (entry.offset == expected) return;
  const char* fault = entry.offset % alignment != 0 ? "is not aligned"
                      : entry.offset < expected     ? "overlaps the tensor before it"
                                                    : "leaves a gap before it";
  reader.fail(entry.offset_offset, entry.label + ".offset", "{} {}, expected {} with alignment {}",
              entry.offset, fault, expected, alignment);
}

// Where the data of `entry` ends in the data section, rounded up to the alignment.
uint64_t padded_end(const ByteReader& reader, const Entry& entry, uint32_t alignment) {
  const auto end = checked_add(entry.offset, entry.view.n_bytes());
  const auto padded = end ? checked_align_up(*end, alignment) : std::nullopt;
  if (!padded) {
    reader.fail(entry.offset_offset, entry.label + ".offset",
                "{} and {} bytes of data reach beyond 2^64", entry.offset, entry.view.n_bytes());
  }
  return *padded;
}

}  // namespace

// Two passes. The first reads the table and adds up sizes: each offset must be the padded end of
// the tensor before it. The second, when the end of the last tensor is known to be inside the file,
// forms the pointers. Example with alignment 32: a tensor of 100 bytes has offset 0, the next one
// 128.
std::vector<GgufTensor> read_gguf_tensors(ByteReader& reader, uint64_t count, uint32_t alignment) {
  std::vector<Entry> entries;
  std::unordered_set<std::string> names;
  uint64_t expected_offset = 0;
  for (uint64_t i = 0; i < count; ++i) {
    entries.push_back(read_entry(reader, i));
    const Entry& entry = entries.back();
    if (!names.insert(entry.name).second) {
      reader.fail(entry.info_offset, fmt::format("tensor[{}].name", i), "'{}' occurs twice",
                  printable(entry.name));
    }
    check_offset(reader, entry, expected_offset, alignment);
    expected_offset = padded_end(reader, entry, alignment);
  }
  if (entries.empty()) return {};

  // The data section begins at the first aligned byte after the table.
  const uint64_t data_start = checked_align_up(reader.offset(), alignment).value();
  const Entry& last = entries.back();  // padded_end has shown that its end in the section fits
  const auto end = checked_add(data_start, last.offset + last.view.n_bytes());
  if (!end || *end > reader.size()) {
    reader.fail(last.offset_offset, last.label + ".data",
                "ends at byte {}, but the file has {} bytes: it is truncated; download it again",
                end.value_or(UINT64_MAX), reader.size());
  }
  for (Entry& entry : entries) entry.view.data = reader.bytes().data() + data_start + entry.offset;
  return {std::make_move_iterator(entries.begin()), std::make_move_iterator(entries.end())};
}

}  // namespace limpid
