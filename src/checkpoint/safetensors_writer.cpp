#include "checkpoint/safetensors_writer.h"

#include <nlohmann/json.hpp>
#include <unordered_set>

#include "base/check.h"
#include "base/checked.h"
#include "base/printable.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/safetensors_dtype.h"

namespace limpid {
namespace {

using Json = nlohmann::ordered_json;

// Names that the reader would refuse are not written.
void check_name(std::string_view name) {
  LIMPID_CHECK(ArgumentError, !name.empty() && is_clean_utf8(name) && name != kSafetensorsMetadata,
               "[safetensors] '{}' is not a valid tensor name", printable(name));
}

// The header's entry of `tensor`. `end` is where the data before it ends; afterwards, where its own
// data ends.
Json entry_of(const NamedTensor& tensor, uint64_t& end) {
  const SafetensorsDType* dtype = safetensors_dtype(tensor.view.dtype);
  LIMPID_CHECK(UnsupportedError, dtype != nullptr,
               "[safetensors] {} is {}: the format has no quantised types", tensor.name,
               tensor.view.to_string());
  const uint64_t begin = end;
  const auto sum = checked_add(begin, tensor.view.n_bytes());
  LIMPID_CHECK(ArgumentError, sum.has_value(), "[safetensors] the tensors have 2^64 bytes or more");
  end = *sum;
  return {
      {"dtype", dtype->name}, {"shape", tensor.view.shape.dims()}, {"data_offsets", {begin, end}}};
}

// The header, padded with spaces to a multiple of 8 bytes so that the data begin aligned.
// `n_bytes`, 0 at first, becomes the size of all data.
std::string header_text(const std::map<std::string, std::string>& metadata,
                        std::span<const NamedTensor> tensors, uint64_t& n_bytes) {
  Json header = Json::object();
  // nlohmann would look each name up among all earlier ones.
  Json::object_t::Container& entries = header.get_ref<Json::object_t&>();
  for (const auto& [key, value] : metadata) {
    LIMPID_CHECK(ArgumentError, is_clean_utf8(key) && is_clean_utf8(value),
                 "[safetensors] the metadata {} is not UTF-8", printable(key));
    header[std::string(kSafetensorsMetadata)][key] = value;
  }
  std::unordered_set<std::string_view> names;
  for (const NamedTensor& tensor : tensors) {
    check_name(tensor.name);
    LIMPID_CHECK(ArgumentError, names.insert(tensor.name).second,
                 "[safetensors] two tensors are named {}", printable(tensor.name));
    entries.emplace_back(tensor.name, entry_of(tensor, n_bytes));
  }
  std::string text = header.dump();
  text.append((8 - text.size() % 8) % 8, ' ');
  LIMPID_CHECK(ArgumentError, text.size() <= kSafetensorsLongestHeader,
               "[safetensors] a header of {} bytes is longer than the format allows", text.size());
  return text;
}

}  // namespace

SafetensorsStream::SafetensorsStream(const std::string& path,
                                     const std::map<std::string, std::string>& metadata,
                                     std::span<const NamedTensor> tensors)
    : file_(path) {
  const std::string header = header_text(metadata, tensors, missing_);
  const uint64_t length = header.size();
  file_.write(std::as_bytes(std::span(&length, 1)));
  file_.write(header);
}

void SafetensorsStream::write(std::span<const std::byte> bytes) {
  LIMPID_CHECK(ArgumentError, bytes.size() <= missing_,
               "[safetensors] {} bytes more than the header says", bytes.size() - missing_);
  file_.write(bytes);
  missing_ -= bytes.size();
}

void SafetensorsStream::commit() {
  LIMPID_CHECK(ArgumentError, missing_ == 0, "[safetensors] {} bytes are missing", missing_);
  file_.commit();
}

void write_safetensors(const std::string& path, const std::map<std::string, std::string>& metadata,
                       std::span<const NamedTensor> tensors) {
  SafetensorsStream stream(path, metadata, tensors);
  for (const NamedTensor& tensor : tensors) stream.write({tensor.view.data, tensor.view.n_bytes()});
  stream.commit();
}

}  // namespace limpid
