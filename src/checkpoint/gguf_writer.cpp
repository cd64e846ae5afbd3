#include "checkpoint/gguf_writer.h"

#include <algorithm>
#include <cmath>
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

// Whether a number of this type holds the value exactly. A NaN fits both f32 and f64.
template <typename T>
bool fits(GgufType type, T value) {
  if (!is_gguf_number(type)) return false;
  return visit_gguf_number(type, [&]<typename File>(File) {
    if constexpr (std::is_integral_v<File> != std::is_integral_v<T>) {
      return false;
    } else if constexpr (std::is_integral_v<File>) {
      return std::in_range<File>(value);
    } else {
      return std::isnan(value) || double{static_cast<File>(value)} == value;
    }
  });
}

// The type that `type_name` names when all values fit it; otherwise `widest`. A value that was read
// as "u32" is written as u32 again. A value with a name that GGUF does not have ("integer", from
// JSON) becomes an i64.
template <typename T>
GgufType choose(std::string_view type_name, std::span<const T> values, GgufType widest) {
  const auto named = type_from_name(type_name);
  const bool all_fit =
      named && std::ranges::all_of(values, [&](T value) { return fits(*named, value); });
  return all_fit ? *named : widest;
}

// Appends one metadata value: its type, then the value. Instead of one value, an array has the
// number of its elements and then all of them.
class ValueWriter {
 public:
  ValueWriter(std::string& out, std::string_view key) : out_(out), key_(key) {}

  void write(const MetadataValue& value) {
    if (is_array(value)) put(out_, GgufType::kArray);
    write_elements(value);
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

  // A value that is not an array is written like the only element of an array, but without its
  // count.
  void write_elements(const MetadataValue& value) {
    constexpr std::string_view kPrefix = "array of ";
    std::string_view type = value.type_name;
    if (type.starts_with(kPrefix)) type.remove_prefix(kPrefix.size());
    std::visit(
        [&]<typename Held>(const Held& held) {
          if constexpr (std::is_same_v<Held, bool>) {
            put(out_, GgufType::kBool);
            put(out_, static_cast<uint8_t>(held));
          } else if constexpr (std::is_same_v<Held, uint64_t>) {
            put(out_, GgufType::kU64);
            put(out_, held);
          } else if constexpr (std::is_same_v<Held, std::string>) {
            put(out_, GgufType::kString);
            put_string(out_, held);
          } else if constexpr (std::is_arithmetic_v<Held>) {
            put_numbers(type, std::span(&held, 1), false);
          } else if constexpr (std::is_same_v<Held, std::vector<int64_t>> ||
                               std::is_same_v<Held, std::vector<double>>) {
            put_numbers(type, std::span(held), true);
          } else {
            put_array(held);
          }
        },
        value.value);
  }

  template <typename T>
  void put_numbers(std::string_view type_name, std::span<const T> values, bool is_array) {
    const GgufType type =
        choose(type_name, values, std::is_integral_v<T> ? GgufType::kI64 : GgufType::kF64);
    put(out_, type);
    if (is_array) put<uint64_t>(out_, values.size());
    visit_gguf_number(type, [&]<typename File>(File) {
      for (const T value : values) put(out_, static_cast<File>(value));
    });
  }

  // An array states the type of its elements once, so all elements must share it.
  template <typename T>
  void put_array(const std::vector<T>& items) {
    constexpr bool kIsText = std::is_same_v<T, std::string>;
    constexpr bool kIsFlag = std::is_same_v<T, bool>;
    put(out_, kIsText ? GgufType::kString : kIsFlag ? GgufType::kBool : GgufType::kArray);
    put<uint64_t>(out_, items.size());
    for (const auto& item : items) {
      if constexpr (kIsText) {
        put_string(out_, item);
      } else if constexpr (kIsFlag) {
        put(out_, static_cast<uint8_t>(item));
      } else {
        LIMPID_CHECK(UnsupportedError, is_array(item),
                     "{} mixes values in one array; GGUF cannot hold that", key_);
        write_elements(item);
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
    ValueWriter(out, key).write(value);
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
    LIMPID_CHECK(ArgumentError, !tensor.name.empty() && tensor.name.size() <= kGgufLongestName,
                 "the tensor name '{}' has {} bytes; GGUF allows 1 to {}", tensor.name,
                 tensor.name.size(), kGgufLongestName);
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
  file_.write(bytes);
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
