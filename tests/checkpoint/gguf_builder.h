// Builds GGUF files for tests and fuzzing: a plain description that can be made wrong in every
// field, and its bytes.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace limpid::gguf_test {

template <typename T>
void put(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof(T));
}

// The bytes of a value, as the file holds them.
template <typename T>
std::string number(T value) {
  std::string out;
  put(out, value);
  return out;
}
inline std::string string_value(std::string_view text) {
  return number<uint64_t>(text.size()) + std::string(text);
}
inline std::string array_value(uint32_t element_type, uint64_t count, std::string_view elements) {
  return number(element_type) + number(count) + std::string(elements);
}

struct KeyValue {
  std::string key;
  uint32_t type = 4;
  std::string value;
  std::optional<uint64_t> key_length;  // a lie about the key's length
};

struct TensorInfo {
  std::string name;
  std::vector<uint64_t> dims;  // innermost first
  uint32_t type = 0;
  uint64_t offset = 0;
  std::optional<uint64_t> name_length;
  std::optional<uint32_t> n_dims;
};

struct GgufSketch {
  std::string magic = "GGUF";
  uint32_t version = 3;
  std::optional<uint64_t> n_tensors;
  std::optional<uint64_t> n_metadata;
  std::vector<KeyValue> metadata;
  std::vector<TensorInfo> tensors;
  uint64_t alignment = 32;  // of the padding before the data
  std::string data;

  KeyValue& add(std::string key, uint32_t type, std::string value) {
    return metadata.emplace_back(KeyValue{std::move(key), type, std::move(value), {}});
  }
  KeyValue& add_u32(std::string key, uint32_t value) {
    return add(std::move(key), 4, number(value));
  }
  KeyValue& add_string(std::string key, std::string_view value) {
    return add(std::move(key), 8, string_value(value));
  }
  // A tensor whose data go at the end, padded.
  TensorInfo& add_tensor(std::string name, std::vector<uint64_t> dims, uint32_t type,
                         std::string_view bytes) {
    data.resize((data.size() + alignment - 1) / alignment * alignment);
    TensorInfo& tensor = tensors.emplace_back();
    tensor.name = std::move(name);
    tensor.dims = std::move(dims);
    tensor.type = type;
    tensor.offset = data.size();
    data += bytes;
    return tensor;
  }
};

// Offsets of fields in the file: "n_tensors", "n_metadata", "kv0.key", "kv0.type", "kv0.value",
// "t0.name", "t0.n_dims", "t0.dims0", "t0.type", "t0.offset", "data".
using Marks = std::map<std::string, uint64_t>;

inline void put_metadata(const GgufSketch& sketch, std::string& out, Marks& marks) {
  for (size_t i = 0; i < sketch.metadata.size(); ++i) {
    const KeyValue& item = sketch.metadata[i];
    const std::string prefix = "kv" + std::to_string(i);
    marks[prefix + ".key"] = out.size();
    put(out, item.key_length.value_or(item.key.size()));
    out += item.key;
    marks[prefix + ".type"] = out.size();
    put(out, item.type);
    marks[prefix + ".value"] = out.size();
    out += item.value;
  }
}

inline void put_tensors(const GgufSketch& sketch, std::string& out, Marks& marks) {
  for (size_t i = 0; i < sketch.tensors.size(); ++i) {
    const TensorInfo& tensor = sketch.tensors[i];
    const std::string prefix = "t" + std::to_string(i);
    marks[prefix + ".name"] = out.size();
    put(out, tensor.name_length.value_or(tensor.name.size()));
    out += tensor.name;
    marks[prefix + ".n_dims"] = out.size();
    put(out, tensor.n_dims.value_or(static_cast<uint32_t>(tensor.dims.size())));
    for (size_t d = 0; d < tensor.dims.size(); ++d) {
      marks[prefix + ".dims" + std::to_string(d)] = out.size();
      put(out, tensor.dims[d]);
    }
    marks[prefix + ".type"] = out.size();
    put(out, tensor.type);
    marks[prefix + ".offset"] = out.size();
    put(out, tensor.offset);
  }
}

inline std::string serialize(const GgufSketch& sketch, Marks* marks_out = nullptr) {
  Marks marks;
  std::string out = sketch.magic;
  put(out, sketch.version);
  marks["n_tensors"] = out.size();
  put(out, sketch.n_tensors.value_or(sketch.tensors.size()));
  marks["n_metadata"] = out.size();
  put(out, sketch.n_metadata.value_or(sketch.metadata.size()));
  put_metadata(sketch, out, marks);
  put_tensors(sketch, out, marks);
  if (!sketch.tensors.empty() && sketch.alignment != 0) {
    out.resize((out.size() + sketch.alignment - 1) / sketch.alignment * sketch.alignment);
  }
  marks["data"] = out.size();
  out += sketch.data;
  if (marks_out != nullptr) *marks_out = std::move(marks);
  return out;
}

// A small valid file: every metadata type, a nested array, a plain, a half-precision and a
// quantised tensor.
inline GgufSketch small_sketch() {
  GgufSketch sketch;
  sketch.add_string("general.architecture", "llama");
  sketch.add_u32("general.alignment", 32);
  sketch.add("a.u8", 0, number<uint8_t>(200));
  sketch.add("a.i8", 1, number<int8_t>(-100));
  sketch.add("a.u16", 2, number<uint16_t>(60000));
  sketch.add("a.i16", 3, number<int16_t>(-30000));
  sketch.add("a.i32", 5, number<int32_t>(-2000000000));
  sketch.add("a.f32", 6, number(0.5f));
  sketch.add("a.bool", 7, number<uint8_t>(1));
  sketch.add("a.u64", 10, number(~uint64_t{0}));
  sketch.add("a.i64", 11, number(int64_t{-5}));
  sketch.add("a.f64", 12, number(0.1));
  sketch.add("a.numbers", 9,
             array_value(5, 3, number<int32_t>(1) + number<int32_t>(-2) + number<int32_t>(3)));
  sketch.add("a.floats", 9, array_value(6, 2, number(1.5f) + number(-2.5f)));
  sketch.add("a.strings", 9,
             array_value(8, 3, string_value("x") + string_value("") + string_value("yz")));
  sketch.add("a.flags", 9, array_value(7, 2, std::string("\x01\x00", 2)));
  const std::string inner = array_value(0, 2, "\x07\x08");
  sketch.add("a.nested", 9, array_value(9, 2, inner + array_value(8, 1, string_value("in"))));
  std::string floats;
  for (int i = 0; i < 6; ++i) put(floats, static_cast<float>(i));
  sketch.add_tensor("plain", {3, 2}, 0, floats);
  sketch.add_tensor("half", {2}, 1, std::string("\x00\x3c\x00\x40", 4));
  sketch.add_tensor("quantised", {32, 2}, 8, std::string(68, '\x01'));
  return sketch;
}

}  // namespace limpid::gguf_test
