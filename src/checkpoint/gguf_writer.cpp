#include "checkpoint/gguf_writer.h"

#include <cmath>
#include <concepts>
#include <optional>
#include <string_view>
#include <type_traits>
#include <unordered_set>
#include <utility>

#include "base/atomic_file.h"
#include "base/check.h"
#include "checkpoint/gguf_types.h"

namespace limpid {
namespace {

// The writer always uses the format's default alignment, so general.alignment need not be written.
constexpr uint64_t kAlignment = kGgufDefaultAlignment;
constexpr size_t kLongestTensorName = 64;

// Appends a number as the host holds it: byte_reader.h asserts that hosts are little-endian.
template <typename T>
void put(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof(T));
}

// A string is its length (u64) and its bytes.
void put_string(std::string& out, std::string_view text) {
  put<uint64_t>(out, text.size());
  out += text;
}

// The GGUF type of that name, if there is one.
std::optional<GgufType> type_from_name(std::string_view name) {
  for (uint32_t id = 0; const GgufTypeInfo* info = gguf_type_info(id); ++id) {
    if (info->name == name) return static_cast<GgufType>(id);
  }
  return std::nullopt;
}

// Whether an integer fits the file's type.
template <std::integral File>
bool fits(int64_t value) {
  return std::in_range<File>(value);
}

// Whether an integer fits the GGUF type `type`.
bool fits(GgufType type, int64_t value) {
  switch (type) {
    case GgufType::kU8:
      return fits<uint8_t>(value);
    case GgufType::kI8:
      return fits<int8_t>(value);
    case GgufType::kU16:
      return fits<uint16_t>(value);
    case GgufType::kI16:
      return fits<int16_t>(value);
    case GgufType::kU32:
      return fits<uint32_t>(value);
    case GgufType::kI32:
      return fits<int32_t>(value);
    case GgufType::kU64:
      return fits<uint64_t>(value);
    default:
      return type == GgufType::kI64;
  }
}

// Two's complement: the low bytes of the number are the same for the signed and the unsigned type.
void put_integer(std::string& out, GgufType type, int64_t value) {
  switch (type) {
    case GgufType::kU8:
    case GgufType::kI8:
      return put(out, static_cast<uint8_t>(value));
    case GgufType::kU16:
    case GgufType::kI16:
      return put(out, static_cast<uint16_t>(value));
    case GgufType::kU32:
    case GgufType::kI32:
      return put(out, static_cast<uint32_t>(value));
    default:
      return put(out, value);
  }
}

// A double fits f32 when the conversion there and back gives the same value, or when it is a NaN.
bool fits(GgufType type, double value) {
  return type == GgufType::kF64 ||
         (type == GgufType::kF32 &&
          (std::isnan(value) || double{static_cast<float>(value)} == value));
}

void put_real(std::string& out, GgufType type, double value) {
  if (type == GgufType::kF32) {
    put(out, static_cast<float>(value));
  } else {
    put(out, value);
  }
}

// The type that `type_name` names when all values fit it; otherwise `widest`. A value that was read
// as "u32" is written as u32 again. A value with a name that GGUF does not have ("integer", from
// JSON) becomes an i64.
template <typename T>
GgufType choose(std::string_view type_name, std::span<const T> values, GgufType widest) {
  const auto named = type_from_name(type_name);
  if (!named) return widest;
  for (const T value : values) {
    if (!fits(*named, value)) return widest;
  }
  return *named;
}

// Appends one metadata value. A top-level value begins with its type; an element of an array does
// not repeat it.
class ValueWriter {
 public:
  ValueWriter(std::string& out, std::string_view key) : out_(out), key_(key) {}

  void write(const MetadataValue& value, bool with_type) {
    if (is_array(value)) {
      if (with_type) put(out_, GgufType::kArray);
      write_array(value);
      return;
    }
    write_scalar(value);
  }

 private:
  static bool is_array(const MetadataValue& value) {
    return std::visit(
        [](const auto& held) {
          using Held = std::decay_t<decltype(held)>;
          return !std::is_arithmetic_v<Held> && !std::is_same_v<Held, std::string>;
        },
        value.value);
  }

  void write_scalar(const MetadataValue& value) {
    if (const auto* flag = std::get_if<bool>(&value.value)) {
      put(out_, GgufType::kBool);
      put(out_, static_cast<uint8_t>(*flag));
    } else if (const auto* wide = std::get_if<uint64_t>(&value.value)) {
      put(out_, GgufType::kU64);
      put(out_, *wide);
    } else if (const auto* integer = std::get_if<int64_t>(&value.value)) {
      const GgufType type = choose<int64_t>(value.type_name, {integer, 1}, GgufType::kI64);
      put(out_, type);
      put_integer(out_, type, *integer);
    } else if (const auto* real = std::get_if<double>(&value.value)) {
      const GgufType type = choose<double>(value.type_name, {real, 1}, GgufType::kF64);
      put(out_, type);
      put_real(out_, type, *real);
    } else {
      put(out_, GgufType::kString);
      put_string(out_, std::get<std::string>(value.value));
    }
  }

  void begin_array(GgufType element, size_t count) {
    put(out_, element);
    put<uint64_t>(out_, count);
  }

  // An array states the type of its elements once, so all elements must share it.
  void write_array(const MetadataValue& value) {
    constexpr std::string_view kPrefix = "array of ";
    std::string_view element = value.type_name;
    if (element.starts_with(kPrefix)) element.remove_prefix(kPrefix.size());
    if (const auto* integers = std::get_if<std::vector<int64_t>>(&value.value)) {
      const GgufType type = choose<int64_t>(element, *integers, GgufType::kI64);
      begin_array(type, integers->size());
      for (const int64_t item : *integers) put_integer(out_, type, item);
    } else if (const auto* reals = std::get_if<std::vector<double>>(&value.value)) {
      const GgufType type = choose<double>(element, *reals, GgufType::kF64);
      begin_array(type, reals->size());
      for (const double item : *reals) put_real(out_, type, item);
    } else if (const auto* strings = std::get_if<std::vector<std::string>>(&value.value)) {
      begin_array(GgufType::kString, strings->size());
      for (const std::string& item : *strings) put_string(out_, item);
    } else if (const auto* flags = std::get_if<std::vector<bool>>(&value.value)) {
      begin_array(GgufType::kBool, flags->size());
      for (const bool item : *flags) put(out_, static_cast<uint8_t>(item));
    } else {
      const auto& items = std::get<MetadataValue::Array>(value.value);
      begin_array(GgufType::kArray, items.size());
      for (const MetadataValue& item : items) {
        LIMPID_CHECK(UnsupportedError, is_array(item),
                     "{} mixes values in one array; GGUF cannot hold that", key_);
        write(item, false);
      }
    }
  }

  std::string& out_;
  std::string_view key_;
};

// Keys that are true only of the file that was read.
bool describes_the_old_file(std::string_view key) {
  return key == "general.alignment" || key.starts_with("split.");
}

void put_metadata(std::string& out, const Metadata& metadata) {
  for (const auto& [key, value] : metadata.all()) {
    if (describes_the_old_file(key)) continue;
    put_string(out, key);
    ValueWriter(out, key).write(value, true);
  }
}

uint64_t count_metadata(const Metadata& metadata) {
  uint64_t count = 0;
  for (const auto& [key, value] : metadata.all()) count += describes_the_old_file(key) ? 0 : 1;
  return count;
}

uint64_t align_up(uint64_t offset) { return (offset + kAlignment - 1) / kAlignment * kAlignment; }

// The table states where the data of each tensor will begin, so it follows from the shapes alone.
void put_tensor_table(std::string& out, std::span<const NamedTensor> tensors) {
  std::unordered_set<std::string_view> names;
  uint64_t offset = 0;
  for (const NamedTensor& tensor : tensors) {
    const Shape& shape = tensor.view.shape;
    LIMPID_CHECK(ArgumentError, !tensor.name.empty() && tensor.name.size() <= kLongestTensorName,
                 "the tensor name '{}' has {} bytes; GGUF allows 1 to {}", tensor.name,
                 tensor.name.size(), kLongestTensorName);
    LIMPID_CHECK(ArgumentError, names.insert(tensor.name).second, "two tensors are named '{}'",
                 tensor.name);
    LIMPID_CHECK(ArgumentError,
                 shape.rank() <= static_cast<int>(kGgufMaxDims) && shape.n_elements() > 0,
                 "'{}' has shape {}; GGUF takes up to 4 dimensions, none of them 0", tensor.name,
                 shape.to_string());
    const auto type = ggml_type_id(tensor.view.dtype);
    LIMPID_CHECK(UnsupportedError, type.has_value(), "'{}' is {}, for which GGUF has no type",
                 tensor.name, dtype_info(tensor.view.dtype).name);
    put_string(out, tensor.name);
    put(out, static_cast<uint32_t>(shape.rank()));
    for (int i = shape.rank() - 1; i >= 0; --i) put(out, shape[i]);
    put(out, *type);
    put(out, offset);
    offset = align_up(offset + tensor.view.n_bytes());
  }
}

}  // namespace

// The head is built in memory, because it is small: metadata and the table of tensors, without
// their data. Its size decides where the data begin.
GgufStream::GgufStream(const std::string& path, const Metadata& metadata,
                       std::span<const NamedTensor> tensors)
    : file_(path) {
  std::string head(kGgufMagic);
  put(head, uint32_t{3});
  put<uint64_t>(head, tensors.size());
  put(head, count_metadata(metadata));
  put_metadata(head, metadata);
  put_tensor_table(head, tensors);
  file_.write(head);
  pad();
  for (const NamedTensor& tensor : tensors) sizes_.push_back(tensor.view.n_bytes());
}

// Fills the file with zeros up to the next multiple of the alignment.
void GgufStream::pad() {
  static constexpr char kZeros[kAlignment] = {};
  file_.write({kZeros, static_cast<size_t>(align_up(file_.size()) - file_.size())});
}

void GgufStream::write(std::span<const std::byte> bytes) {
  LIMPID_CHECK(ArgumentError, tensor_ < sizes_.size() && bytes.size() <= sizes_[tensor_] - written_,
               "[gguf writer] {} bytes are more than tensor {} still needs", bytes.size(), tensor_);
  file_.write({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  written_ += bytes.size();
  if (written_ < sizes_[tensor_]) return;
  pad();
  ++tensor_;
  written_ = 0;
}

void GgufStream::commit() {
  LIMPID_CHECK(ArgumentError, tensor_ == sizes_.size(),
               "[gguf writer] the bytes of {} tensors are missing", sizes_.size() - tensor_);
  file_.commit();
}

}  // namespace limpid
