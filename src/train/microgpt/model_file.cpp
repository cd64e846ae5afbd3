#include "train/microgpt/model_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <span>
#include <utility>

#include "base/check.h"
#include "base/mapped_file.h"
#include "base/parse_number.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/safetensors_writer.h"

namespace limpid::microgpt {
namespace {

constexpr std::string_view kFormat = "limpid.microgpt";

// The sizes of a shape, which the metadata hold as decimal numbers.
constexpr std::pair<const char*, int64_t Shape::*> kSizes[] = {{"n_embd", &Shape::n_embd},
                                                               {"n_layer", &Shape::n_layer},
                                                               {"n_head", &Shape::n_head},
                                                               {"block_size", &Shape::block_size}};

// A file that is being read. Files come from anywhere, so each value is checked before it decides
// about a size: the metadata give the shape of the model, and the shape says which tensors there
// must be.
class ModelReader {
 public:
  ModelReader(const std::string& path, std::span<const std::byte> bytes)
      : path_(path), file_(parse_safetensors(path, bytes)) {}

  // Returns the model without its weights.
  SavedModel read_metadata() const {
    if (text("format") != kFormat) fail("__metadata__.format", fmt::format("is not {}", kFormat));
    SavedModel model;
    const std::u32string characters = from_utf8(text("characters"), path_);
    if (std::ranges::adjacent_find(characters, std::ranges::greater_equal()) != characters.end())
      fail("__metadata__.characters", "are not in ascending order");
    model.alphabet = Alphabet(characters);
    model.shape.vocab_size = model.alphabet.vocab_size();
    for (const auto& [key, size] : kSizes) model.shape.*size = number(key);
    try {
      static_cast<void>(Matrices(model.shape));  // throws for sizes that no model can have
    } catch (const ArgumentError& error) {
      fail("__metadata__", error.what());
    }
    return model;
  }

  // Returns the tensor with this name, after checking its dtype and shape.
  const TensorView& find(const Matrices::Named& named) const {
    const auto tensor = std::ranges::find(file_.tensors, named.name, &SafetensorsTensor::name);
    if (tensor == file_.tensors.end()) fail(named.name, "missing");
    if (tensor->view.dtype != DType::kF32 && tensor->view.dtype != DType::kF64)
      fail(named.name + ".dtype", "is not F32 or F64");
    const limpid::Shape expected{named.matrix.rows, named.matrix.cols};
    if (tensor->view.shape != expected)
      fail(named.name + ".shape", "is not " + expected.to_string());
    return tensor->view;
  }

 private:
  [[noreturn]] void fail(const std::string& field, const std::string& problem) const {
    throw FormatError(path_, FormatError::kNoOffset, field, problem);
  }
  const std::string& text(const std::string& key) const {
    const auto entry = file_.metadata.find(key);
    if (entry == file_.metadata.end())
      fail("__metadata__." + key, "missing; only a file that microgpt saved can be read");
    return entry->second;
  }
  int64_t number(const std::string& key) const {
    const std::string& digits = text(key);
    const auto value = parse_number<int64_t>(digits);
    if (!value) fail("__metadata__." + key, fmt::format("'{}' is not a whole number", digits));
    return *value;
  }

  const std::string& path_;
  SafetensorsFile file_;
};

// The elements may be at any address, aligned or not.
template <typename T>
void append_numbers(const TensorView& tensor, std::vector<double>& numbers) {
  for (uint64_t at = 0; at < tensor.n_bytes(); at += sizeof(T)) {
    T value;
    std::memcpy(&value, tensor.data + at, sizeof(T));
    numbers.push_back(value);
  }
}

template <typename T>
void write_matrices(const std::string& path, const SavedModel& model, const Matrices& matrices,
                    DType dtype) {
  const std::vector<T> numbers(model.weights.begin(), model.weights.end());
  std::vector<NamedTensor> tensors;
  for (const auto& [name, matrix] : matrices.named) {
    const auto* data = reinterpret_cast<const std::byte*>(numbers.data() + matrix.offset);
    tensors.push_back({name, {dtype, limpid::Shape{matrix.rows, matrix.cols}, data}});
  }
  std::map<std::string, std::string> metadata = {
      {"format", std::string(kFormat)}, {"characters", to_utf8(model.alphabet.characters())}};
  for (const auto& [key, size] : kSizes) metadata[key] = std::to_string(model.shape.*size);
  write_safetensors(path, metadata, tensors);
}

}  // namespace

void save_model(const std::string& path, const SavedModel& model, DType type) {
  const Matrices matrices(model.shape);
  LIMPID_CHECK(ShapeError, std::ssize(model.weights) == matrices.n_params,
               "{} weights do not fit a model of {} parameters", model.weights.size(),
               matrices.n_params);
  if (type == DType::kF64) {
    write_matrices<double>(path, model, matrices, type);
  } else {
    write_matrices<float>(path, model, matrices, type);
  }
}

SavedModel load_model(const std::string& path) {
  const auto file = MappedFile::open(path);
  const ModelReader reader(path, file->bytes());
  SavedModel model = reader.read_metadata();
  const Matrices matrices(model.shape);
  for (const Matrices::Named& named : matrices.named) {
    const TensorView& tensor = reader.find(named);
    if (tensor.dtype == DType::kF64) {
      append_numbers<double>(tensor, model.weights);
    } else {
      append_numbers<float>(tensor, model.weights);
    }
  }
  return model;
}

}  // namespace limpid::microgpt
