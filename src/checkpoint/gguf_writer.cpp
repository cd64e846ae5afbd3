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
#include "base/divide_up.h"
#include "checkpoint/byte_reader.h"
#include "checkpoint/gguf_types.h"

namespace limpid {
namespace {

// The writer always uses the format's default alignment, so general.alignment need not be written.
constexpr uint64_t kAlignment = kGgufDefaultAlignment;

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

// The type that `type_name` names when all values fit it; otherwise the widest. A value that was
// read as "u32" is written as u32 again. A value with a name that GGUF does not have ("integer",
// from JSON) becomes an i64.
template <typename T>
GgufType choose(std::string_view type_name, std::span<const T> values) {
  const auto named = type_from_name(type_name);
  const bool all_fit =
      named && std::ranges::all_of(values, [&](T value) { return fits(*named, value); });
  if (all_fit) return *named;
  if (std::is_same_v<T, uint64_t>) return GgufType::kU64;
  return std::is_integral_v<T> ? GgufType::kI64 : GgufType::kF64;
}

template <typename Held>
constexpr bool kIsArray = false;
template <typename Element>
constexpr bool kIsArray<std::vector<Element>> = true;

bool is_array(const MetadataValue& value) {
  return std::visit([]<typename Held>(const Held&) { return kIsArray<Held>; }, value.value);
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
  // A value that is not an array is written like the only element of an array, but without its
  // count.
  void write_elements(const MetadataValue& value) {
    constexpr std::string_view kPrefix = "array of ";
    std::string_view type = value.type_name;
    if (type.starts_with(kPrefix)) type.remove_prefix(kPrefix.size());
    std::visit(
        [&]<typename Held>(const Held& held) {
          if constexpr (kIsArray<Held>) {
            put_elements(type, held, true);
          } else {
            put_elements(type, std::span(&held, 1), false);
          }
        },
        value.value);
  }

  // An array states the type of its elements once, so all elements must share it.
  template <typename Items>
  void put_elements(std::string_view type_name, const Items& items, bool is_array) {
    using Item = std::ranges::range_value_t<Items>;
    constexpr bool kIsFlag = std::is_same_v<Item, bool>;
    constexpr bool kIsNumber = std::is_arithmetic_v<Item> && !kIsFlag;
    GgufType type = kIsFlag                             ? GgufType::kBool
                    : std::is_same_v<Item, std::string> ? GgufType::kString
                                                        : GgufType::kArray;
    if constexpr (kIsNumber) type = choose<Item>(type_name, items);
    put(out_, type);
    if (is_array) put<uint64_t>(out_, items.size());
    if constexpr (kIsNumber) {
      visit_gguf_number(type, [&]<typename File>(File) {
        for (const Item item : items) put(out_, static_cast<File>(item));
      });
    } else {
      for (const auto& item : items) put_item(item);
    }
  }

  void put_item(bool flag) { put(out_, static_cast<uint8_t>(flag)); }
  void put_item(const std::string& text) { put_string(out_, text); }
  void put_item(const MetadataValue& array) {
    LIMPID_CHECK(UnsupportedError, is_array(array),
                 "{} mixes values in one array; GGUF cannot hold that", key_);
    write_elements(array);
  }

  std::string& out_;
  std::string_view key_;
};

// Appends the number of keys, and the keys without those that are true only of the file that was
// read.
void put_metadata(std::string& out, Metadata metadata) {
  metadata.erase_below(kGgufAlignmentKey);
  metadata.erase_below("split.");
  put<uint64_t>(out, metadata.all().size());
  for (const auto& [key, value] : metadata.all()) {
    put_string(out, key);
    ValueWriter(out, key).write(value);
  }
}

uint64_t align_up(uint64_t offset) { return divide_up(offset, kAlignment) * kAlignment; }

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
