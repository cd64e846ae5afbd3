#include "train/microgpt/model_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <map>

#include "base/check.h"
#include "base/mapped_file.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/safetensors_writer.h"

namespace limpid::microgpt {
namespace {

constexpr std::string_view kFormat = "limpid.microgpt";

using FileMetadata = std::map<std::string, std::string>;

// The file that is being read, for messages.
struct Source {
  const std::string& path;

  [[noreturn]] void fail(const std::string& field, const std::string& problem) const {
    throw FormatError(path, FormatError::kNoOffset, field, problem);
  }
};

const std::string& metadata_text(const Source& source, const FileMetadata& metadata,
                                 const std::string& key) {
  const auto entry = metadata.find(key);
  if (entry == metadata.end()) {
    source.fail("__metadata__." + key, "missing; only a file that microgpt saved can be read");
  }
  return entry->second;
}

int64_t metadata_number(const Source& source, const FileMetadata& metadata,
                        const std::string& key) {
  const std::string text = metadata_text(source, metadata, key);
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    source.fail("__metadata__." + key, fmt::format("'{}' is not a whole number", text));
  }
  return value;
}

SavedModel read_metadata(const Source& source, const FileMetadata& metadata) {
  if (metadata_text(source, metadata, "format") != kFormat) {
    source.fail("__metadata__.format", fmt::format("is not {}", kFormat));
  }
  SavedModel model;
  const std::u32string characters =
      from_utf8(metadata_text(source, metadata, "characters"), source.path);
  for (size_t i = 1; i < characters.size(); ++i) {
    if (characters[i - 1] >= characters[i]) {
      source.fail("__metadata__.characters", "are not in ascending order");
    }
  }
  model.alphabet = Alphabet(characters);
  model.shape.vocab_size = model.alphabet.vocab_size();
  model.shape.n_embd = metadata_number(source, metadata, "n_embd");
  model.shape.n_layer = metadata_number(source, metadata, "n_layer");
  model.shape.n_head = metadata_number(source, metadata, "n_head");
  model.shape.block_size = metadata_number(source, metadata, "block_size");
  try {
    validate(model.shape);
  } catch (const ArgumentError& error) {
    source.fail("__metadata__", error.what());
  }
  return model;
}

// Returns the tensor with this name, after checking its dtype and shape.
const TensorView& find_tensor(const Source& source, const SafetensorsFile& file,
                              const Matrices::Named& named) {
  const auto tensor = std::ranges::find(file.tensors, named.name, &SafetensorsTensor::name);
  if (tensor == file.tensors.end()) source.fail(named.name, "missing");
  if (tensor->view.dtype != DType::kF32 && tensor->view.dtype != DType::kF64)
    source.fail(named.name + ".dtype", "is not F32 or F64");
  const limpid::Shape expected{named.matrix.rows, named.matrix.cols};
  if (tensor->view.shape != expected)
    source.fail(named.name + ".shape", "is not " + expected.to_string());
  return tensor->view;
}

// The elements may be at any address, aligned or not.
template <typename T>
void append_numbers(const TensorView& tensor, std::vector<double>& numbers) {
  for (uint64_t at = 0; at < tensor.n_bytes(); at += sizeof(T)) {
    T value;
    std::memcpy(&value, tensor.data + at, sizeof(T));
    numbers.push_back(value);
  }
}

FileMetadata metadata_of(const SavedModel& model) {
  return {{"format", std::string(kFormat)},
          {"n_embd", fmt::format("{}", model.shape.n_embd)},
          {"n_layer", fmt::format("{}", model.shape.n_layer)},
          {"n_head", fmt::format("{}", model.shape.n_head)},
          {"block_size", fmt::format("{}", model.shape.block_size)},
          {"characters", to_utf8(model.alphabet.characters())}};
}

template <typename T>
void write_matrices(const std::string& path, const SavedModel& model, const Matrices& matrices,
                    DType dtype) {
  const std::vector<T> numbers(model.weights.begin(), model.weights.end());
  std::vector<NamedTensor> tensors;
  for (const auto& [name, matrix] : matrices.named()) {
    const auto* data = reinterpret_cast<const std::byte*>(numbers.data() + matrix.offset);
    tensors.push_back({name, {dtype, limpid::Shape{matrix.rows, matrix.cols}, data}});
  }
  write_safetensors(path, metadata_of(model), tensors);
}

}  // namespace

void save_model(const std::string& path, const SavedModel& model, SavedType type) {
  const Matrices matrices(model.shape);
  LIMPID_CHECK(ShapeError, std::ssize(model.weights) == matrices.n_params,
               "{} weights do not fit a model of {} parameters", model.weights.size(),
               matrices.n_params);
  if (type == SavedType::kF64) {
    write_matrices<double>(path, model, matrices, DType::kF64);
  } else {
    write_matrices<float>(path, model, matrices, DType::kF32);
  }
}

SavedModel load_model(const std::string& path) {
  const auto file = MappedFile::open(path);
  const Source source{path};
  const SafetensorsFile tensors = parse_safetensors(path, file->bytes());
  SavedModel model = read_metadata(source, tensors.metadata);
  for (const Matrices::Named& named : Matrices(model.shape).named()) {
    const TensorView& tensor = find_tensor(source, tensors, named);
    if (tensor.dtype == DType::kF64) {
      append_numbers<double>(tensor, model.weights);
    } else {
      append_numbers<float>(tensor, model.weights);
    }
  }
  return model;
}

}  // namespace limpid::microgpt
