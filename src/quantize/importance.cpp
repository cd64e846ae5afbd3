#include "quantize/importance.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "base/check.h"
#include "base/mapped_file.h"
#include "checkpoint/byte_reader.h"
#include "checkpoint/gguf.h"
#include "checkpoint/gguf_types.h"
#include "tensor/codec.h"

namespace limpid {
namespace {

using Columns = std::map<std::string, std::vector<float>, std::less<>>;

constexpr std::string_view kSums = ".in_sum2";
constexpr std::string_view kCounts = ".counts";

void check_mean_squares(const std::string& path, const std::string& name,
                        const std::vector<float>& columns) {
  for (const float value : columns) {
    if (!std::isfinite(value) || value < 0) {
      throw_format_error(path, name, "contains {}, which is not a mean square", value);
    }
  }
}

// Reads the GGUF format: sums of squares, and the number of activations in each sum. Tensors with
// several matrices (experts) are not supported, like the models that have them. A matrix that saw
// no activation gets 1 for each column, so that all errors count alike.
Columns read_gguf_columns(const std::string& path) {
  const Checkpoint file = open_gguf(path);
  Columns result;
  for (const auto& [name, tensor] : file.tensors) {
    if (!name.ends_with(kSums)) continue;
    const std::string matrix = name.substr(0, name.size() - kSums.size());
    const int64_t n_matrices = tensor.shape.rows();
    if (n_matrices != 1) {
      throw_format_error(path, name, "has {} matrices (experts), which are not supported",
                         n_matrices);
    }
    const TensorView* counts = file.find(matrix + std::string(kCounts));
    if (counts == nullptr || counts->shape.n_elements() != 1) {
      throw_format_error(path, name, "has no count of the activations it sums");
    }
    std::vector<float> columns = decode(tensor);
    const float count = decode(*counts).front();
    for (float& column : columns) column = count > 0 ? column / count : 1;
    result[matrix] = std::move(columns);
  }
  if (result.empty()) {
    throw_format_error(path, "tensors", "do not include importances: none is named *.in_sum2");
  }
  return result;
}

// Reads the older format: entries of (length, name, calls, n, n floats). Each float is a sum of
// mean squares, one for each call. What follows the entries is not read.
Columns read_dat_columns(const std::string& path, const MappedFile& file) {
  constexpr int32_t kMostEntries = 1 << 20;
  constexpr int32_t kLongestName = 4096;
  ByteReader reader(path, file.bytes());
  const auto size = [&](std::string_view field, int32_t largest) {
    const uint64_t at = reader.offset();
    const auto value = reader.number<int32_t>(field);
    if (value < 1 || value > largest) {
      reader.fail(at, field, "is {}; this is not an importance matrix", value);
    }
    return value;
  };
  Columns result;
  const int32_t n_entries = size("number of entries", kMostEntries);
  for (int32_t i = 0; i < n_entries; ++i) {
    const auto name_size = static_cast<uint64_t>(size("length of name", kLongestName));
    const std::string name(reader.take(name_size, "name"));
    const auto n_calls = reader.number<int32_t>("calls");
    const auto n_values =
        static_cast<uint64_t>(size("number of columns", std::numeric_limits<int32_t>::max()));
    const auto bytes = reader.take(n_values * sizeof(float), name);
    std::vector<float> columns(n_values);
    std::memcpy(columns.data(), bytes.data(), bytes.size());
    for (float& column : columns) column = n_calls > 0 ? column / static_cast<float>(n_calls) : 1;
    result[name] = std::move(columns);
  }
  return result;
}

}  // namespace

Importance Importance::open(const std::string& path) {
  const auto file = MappedFile::open(path);
  Importance importance;
  importance.path_ = path;
  importance.columns_ = text_of(*file).starts_with(kGgufMagic) ? read_gguf_columns(path)
                                                               : read_dat_columns(path, *file);
  for (const auto& [name, columns] : importance.columns_) check_mean_squares(path, name, columns);
  return importance;
}

std::span<const float> Importance::columns_of(std::string_view name, int64_t n_cols) const {
  const auto found = columns_.find(name);
  if (found == columns_.end()) return {};
  LIMPID_CHECK(
      ShapeError, static_cast<int64_t>(found->second.size()) == n_cols,
      "the importance of {} has {} columns, but the tensor has {}: it belongs to another model",
      name, found->second.size(), n_cols);
  return found->second;
}

}  // namespace limpid
