#include "fuzz/gguf_mutator.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <random>
#include <utility>

#include "checkpoint/gguf_types.h"
#include "tensor/dtype.h"

namespace limpid::fuzz {
namespace {

using gguf_test::GgufSketch;
using gguf_test::KeyValue;
using gguf_test::TensorInfo;

constexpr size_t kMostEntries = 64;

// Reads without ever failing: what is missing is zero, lengths stop at the end.
class Loose {
 public:
  explicit Loose(std::string_view bytes) : bytes_(bytes) {}

  bool at_end() const { return bytes_.empty(); }
  size_t left() const { return bytes_.size(); }
  std::string_view take(uint64_t n) {
    const std::string_view taken =
        bytes_.substr(0, static_cast<size_t>(std::min<uint64_t>(n, bytes_.size())));
    bytes_.remove_prefix(taken.size());
    return taken;
  }
  template <typename T>
  T number() {
    T value{};
    const std::string_view taken = take(sizeof(T));
    std::memcpy(&value, taken.data(), taken.size());
    return value;
  }

 private:
  std::string_view bytes_;
};

void copy_value(Loose& in, uint32_t type, std::string& out, int depth) {
  constexpr auto kString = static_cast<uint32_t>(GgufType::kString);
  constexpr auto kArray = static_cast<uint32_t>(GgufType::kArray);
  const GgufTypeInfo* info = gguf_type_info(type);
  if (info == nullptr || depth > 6) return;
  if (type == kString) {
    const auto length = in.number<uint64_t>();
    gguf_test::put(out, length);
    out += in.take(length);
  } else if (type == kArray) {
    const auto element = in.number<uint32_t>();
    const auto count = in.number<uint64_t>();
    gguf_test::put(out, element);
    gguf_test::put(out, count);
    size_t left = in.left() + 1;
    for (uint64_t i = 0; i < count && in.left() < left; ++i) {  // while elements take bytes
      left = in.left();
      copy_value(in, element, out, depth + 1);
    }
  } else {
    out += in.take(info->min_bytes);
  }
}

TensorInfo parse_tensor(Loose& in) {
  TensorInfo tensor;
  const auto length = in.number<uint64_t>();
  tensor.name = in.take(length);
  if (tensor.name.size() != length) tensor.name_length = length;
  const auto n_dims = in.number<uint32_t>();
  for (uint32_t i = 0; i < std::min<uint32_t>(n_dims, 6); ++i)
    tensor.dims.push_back(in.number<uint64_t>());
  if (tensor.dims.size() != n_dims) tensor.n_dims = n_dims;
  tensor.type = in.number<uint32_t>();
  tensor.offset = in.number<uint64_t>();
  return tensor;
}

// The bytes of a tensor if it is sane and small, else nothing.
uint64_t small_size(const TensorInfo& tensor) {
  const GgmlType* type = ggml_type(tensor.type);
  if (type == nullptr || !type->dtype || tensor.n_dims) return 0;
  const DTypeInfo& info = dtype_info(*type->dtype);
  uint64_t elements = 1;
  for (const uint64_t dim : tensor.dims) {
    if (dim == 0 || dim > 4096) return 0;
    elements *= dim;
    if (elements > (1 << 14)) return 0;
  }
  return elements / info.block_size * info.block_bytes;
}

}  // namespace

GgufSketch parse_sketch(std::string_view bytes) {
  Loose in(bytes);
  GgufSketch sketch;
  sketch.magic = in.take(4);
  sketch.version = in.number<uint32_t>();
  const auto n_tensors = in.number<uint64_t>();
  const auto n_metadata = in.number<uint64_t>();
  for (uint64_t i = 0; i < std::min<uint64_t>(n_metadata, kMostEntries) && !in.at_end(); ++i) {
    KeyValue& item = sketch.metadata.emplace_back();
    const auto length = in.number<uint64_t>();
    item.key = in.take(length);
    if (item.key.size() != length) item.key_length = length;
    item.type = in.number<uint32_t>();
    copy_value(in, item.type, item.value, 0);
    if (item.key == "general.alignment" && item.value.size() == 4) {
      uint32_t alignment = 0;
      std::memcpy(&alignment, item.value.data(), 4);
      if (alignment > 0 && alignment <= 4096) sketch.alignment = alignment;
    }
  }
  for (uint64_t i = 0; i < std::min<uint64_t>(n_tensors, kMostEntries) && !in.at_end(); ++i) {
    sketch.tensors.push_back(parse_tensor(in));
  }
  if (sketch.metadata.size() != n_metadata) sketch.n_metadata = n_metadata;
  if (sketch.tensors.size() != n_tensors) sketch.n_tensors = n_tensors;
  const size_t used = bytes.size() - in.left();
  in.take((sketch.alignment - used % sketch.alignment) % sketch.alignment);
  sketch.data = in.take(in.left());
  return sketch;
}

namespace {

class GgufMutator {
 public:
  explicit GgufMutator(unsigned seed) : random_(seed) {}

  void mutate(GgufSketch& sketch);

 private:
  uint64_t below(uint64_t n) { return random_() % n; }
  uint64_t odd_number();  // small, or at an edge of some width

  void mutate_header(GgufSketch& sketch);
  void mutate_key(GgufSketch& sketch);
  void mutate_value(GgufSketch& sketch);
  void mutate_tensor(GgufSketch& sketch);
  void mutate_lists(GgufSketch& sketch);
  void mutate_data(GgufSketch& sketch);
  // Makes counts, offsets and data fit again, so that other faults are reached.
  void repair(GgufSketch& sketch);

  std::mt19937_64 random_;
};

uint64_t GgufMutator::odd_number() {
  static constexpr uint64_t kEdges[] = {0,
                                        1,
                                        2,
                                        31,
                                        32,
                                        64,
                                        255,
                                        256,
                                        0x7fffffff,
                                        0x80000000,
                                        0xffffffff,
                                        0x100000000,
                                        uint64_t{1} << 58,
                                        uint64_t{1} << 61,
                                        uint64_t{1} << 62,
                                        0x7fffffffffffffff,
                                        0x8000000000000000,
                                        ~uint64_t{0} - 31,
                                        ~uint64_t{0}};
  const uint64_t edge = kEdges[below(std::size(kEdges))];
  return below(3) == 0 ? edge + below(5) - 2 : edge;
}

void GgufMutator::mutate_header(GgufSketch& sketch) {
  switch (below(5)) {
    case 0:
      sketch.version = static_cast<uint32_t>(below(2) == 0 ? below(5) : odd_number());
      break;
    case 1:
      sketch.n_tensors = odd_number();
      break;
    case 2:
      sketch.n_metadata = odd_number();
      break;
    case 3:
      sketch.n_tensors = sketch.tensors.size() + below(3);
      break;
    default:
      sketch.n_metadata = sketch.metadata.size() + below(3);
      break;
  }
}

void GgufMutator::mutate_key(GgufSketch& sketch) {
  if (sketch.metadata.empty()) return;
  KeyValue& item = sketch.metadata[below(sketch.metadata.size())];
  switch (below(6)) {
    case 0:
      item.key_length = odd_number();
      break;
    case 1:
      item.key = sketch.metadata[below(sketch.metadata.size())].key;
      break;
    case 2:
      item.key.clear();
      break;
    case 3:
      item.key += static_cast<char>(below(256));
      break;
    case 4:
      item.key = "general.alignment";
      break;
    default:
      item.type = static_cast<uint32_t>(below(14));
      break;
  }
}

void GgufMutator::mutate_value(GgufSketch& sketch) {
  if (sketch.metadata.empty()) return;
  KeyValue& item = sketch.metadata[below(sketch.metadata.size())];
  constexpr auto kArray = static_cast<uint32_t>(GgufType::kArray);
  switch (below(5)) {
    case 0: {  // a number anywhere in it, often at its start
      const uint64_t value = odd_number();
      const size_t width = size_t{1} << below(4);
      if (item.value.size() < width) break;
      const size_t place = below(2) == 0 ? 0 : below(item.value.size() - width + 1);
      std::memcpy(item.value.data() + place, &value, width);
      break;
    }
    case 1:  // an array of something
      item.type = kArray;
      item.value =
          gguf_test::array_value(static_cast<uint32_t>(below(14)), odd_number(), item.value);
      break;
    case 2:  // one level deeper
      if (item.type == kArray)
        item.value = gguf_test::array_value(kArray, 1 + below(2), item.value);
      break;
    case 3:
      item.type = static_cast<uint32_t>(GgufType::kString);
      item.value = gguf_test::number(odd_number()) + item.value;
      break;
    default:
      item.value.resize(below(item.value.size() + 9));
      break;
  }
}

void GgufMutator::mutate_tensor(GgufSketch& sketch) {
  if (sketch.tensors.empty()) return;
  TensorInfo& tensor = sketch.tensors[below(sketch.tensors.size())];
  switch (below(9)) {
    case 0:
      tensor.name_length = odd_number();
      break;
    case 1:
      tensor.name = sketch.tensors[below(sketch.tensors.size())].name;
      break;
    case 2:
      tensor.name += static_cast<char>(below(256));
      break;
    case 3:
      tensor.n_dims = static_cast<uint32_t>(odd_number());
      break;
    case 4:
      tensor.dims.resize(below(6), 1);
      break;
    case 5:
      if (!tensor.dims.empty()) tensor.dims[below(tensor.dims.size())] = odd_number();
      break;
    case 6:
      tensor.type = static_cast<uint32_t>(below(44));
      break;
    case 7:
      tensor.offset = odd_number();
      break;
    default:
      tensor.offset += (below(9) - 4) * (below(2) == 0 ? 1 : sketch.alignment);
      break;
  }
}

void GgufMutator::mutate_lists(GgufSketch& sketch) {
  const auto shuffle_entries = [&](auto& list) {
    if (list.empty() || list.size() > kMostEntries) return;
    const size_t i = below(list.size());
    const size_t j = below(list.size());
    switch (below(3)) {
      case 0:
        list.erase(list.begin() + static_cast<std::ptrdiff_t>(i));
        break;
      case 1:
        list.insert(list.end(), list[i]);
        break;
      default:
        std::swap(list[i], list[j]);
        break;
    }
  };
  if (below(2) == 0) {
    shuffle_entries(sketch.metadata);
  } else {
    shuffle_entries(sketch.tensors);
  }
}

void GgufMutator::mutate_data(GgufSketch& sketch) {
  if (below(2) == 0 || sketch.data.empty()) {
    sketch.data.resize(below(sketch.data.size() + 65));
  } else {
    sketch.data[below(sketch.data.size())] = static_cast<char>(below(256));
  }
}

void GgufMutator::repair(GgufSketch& sketch) {
  sketch.n_tensors.reset();
  sketch.n_metadata.reset();
  if (below(2) == 0) {
    static constexpr uint32_t kAlignments[] = {1, 8, 16, 32, 64, 4096};
    sketch.alignment = kAlignments[below(std::size(kAlignments))];
    std::erase_if(sketch.metadata,
                  [](const KeyValue& item) { return item.key == "general.alignment"; });
    sketch.add_u32("general.alignment", static_cast<uint32_t>(sketch.alignment));
  }
  uint64_t offset = 0;
  for (TensorInfo& tensor : sketch.tensors) {
    tensor.offset = offset;
    offset += small_size(tensor);
    offset = (offset + sketch.alignment - 1) / sketch.alignment * sketch.alignment;
  }
  sketch.data.resize(std::min<uint64_t>(offset, 1 << 16));
}

void GgufMutator::mutate(GgufSketch& sketch) {
  const uint64_t changes = 1 + below(3);
  for (uint64_t i = 0; i < changes; ++i) {
    switch (below(10)) {
      case 0:
        mutate_header(sketch);
        break;
      case 1:
        mutate_key(sketch);
        break;
      case 2:
      case 3:
        mutate_value(sketch);
        break;
      case 4:
      case 5:
      case 6:
        mutate_tensor(sketch);
        break;
      case 7:
        mutate_lists(sketch);
        break;
      case 8:
        mutate_data(sketch);
        break;
      default:
        repair(sketch);
        break;
    }
  }
}

}  // namespace

size_t mutate_gguf(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  GgufSketch sketch = parse_sketch({reinterpret_cast<const char*>(data), size});
  GgufMutator(seed).mutate(sketch);
  const std::string bytes = serialize(sketch);
  const size_t n_bytes = std::min(bytes.size(), max_size);
  std::memcpy(data, bytes.data(), n_bytes);
  return n_bytes;
}

}  // namespace limpid::fuzz
