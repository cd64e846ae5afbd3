// safetensors: the length of a JSON header in eight bytes (little endian), the header, the numbers.
// https://huggingface.co/docs/safetensors
#include "train/microgpt/model_file.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <charconv>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/atomic_file.h"
#include "base/check.h"
#include "base/mapped_file.h"

namespace limpid::microgpt {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are written as they lie");

constexpr std::string_view kFormat = "limpid.microgpt";
constexpr uint64_t kMaxHeader = uint64_t{1} << 24;
constexpr uint64_t kLengthBytes = 8;

using Json = nlohmann::ordered_json;

// What is being read, for the messages.
struct Source {
  const std::string& path;

  [[noreturn]] void fail(const std::string& field, const std::string& problem) const {
    throw FormatError(path, FormatError::kNoOffset, field, problem);
  }
};

std::string metadata_text(const Source& source, const Json& metadata, const std::string& key) {
  const auto entry = metadata.find(key);
  if (entry == metadata.end() || !entry->is_string()) {
    source.fail("__metadata__." + key,
                "missing; only files of `limpid microgpt --save` can be read");
  }
  return entry->get<std::string>();
}

int64_t metadata_number(const Source& source, const Json& metadata, const std::string& key) {
  const std::string text = metadata_text(source, metadata, key);
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    source.fail("__metadata__." + key, fmt::format("'{}' is no whole number", text));
  }
  return value;
}

SavedModel read_metadata(const Source& source, const Json& header) {
  const auto found = header.find("__metadata__");
  const Json metadata = found != header.end() && found->is_object() ? *found : Json::object();
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

// The bytes of one tensor, of which `type` and shape are as expected.
std::span<const std::byte> tensor_bytes(const Source& source, const Json& header,
                                        const Matrices::Named& named,
                                        std::span<const std::byte> data, bool& is_f64) {
  const auto tensor = header.find(named.name);
  if (tensor == header.end() || !tensor->is_object()) source.fail(named.name, "missing");
  const std::string type = tensor->value("dtype", Json()).is_string()
                               ? tensor->at("dtype").get<std::string>()
                               : std::string();
  if (type != "F32" && type != "F64") source.fail(named.name + ".dtype", "is not F32 or F64");
  is_f64 = type == "F64";
  const Json shape = Json::array({named.matrix.rows, named.matrix.cols});
  if (tensor->value("shape", Json()) != shape) {
    source.fail(named.name + ".shape", "is not " + shape.dump());
  }
  const Json offsets = tensor->value("data_offsets", Json());
  if (!offsets.is_array() || offsets.size() != 2 || !offsets[0].is_number_unsigned() ||
      !offsets[1].is_number_unsigned()) {
    source.fail(named.name + ".data_offsets", "are not two offsets");
  }
  const auto begin = offsets[0].get<uint64_t>();
  const auto end = offsets[1].get<uint64_t>();
  const uint64_t n_bytes = static_cast<uint64_t>(named.matrix.size()) * (is_f64 ? 8 : 4);
  if (begin > end || end > data.size() || end - begin != n_bytes) {
    source.fail(named.name + ".data_offsets",
                fmt::format("[{}, {}] do not hold {} bytes of the file's {}", begin, end, n_bytes,
                            data.size()));
  }
  return data.subspan(begin, n_bytes);
}

template <typename T>
void append_numbers(std::span<const std::byte> bytes, std::vector<double>& numbers) {
  for (size_t at = 0; at < bytes.size(); at += sizeof(T)) {
    T value;
    std::memcpy(&value, bytes.data() + at, sizeof(T));
    numbers.push_back(value);
  }
}

Json header_of(const SavedModel& model, const Matrices& matrices, SavedType type) {
  Json header;
  header["__metadata__"] = {{"format", kFormat},
                            {"n_embd", fmt::format("{}", model.shape.n_embd)},
                            {"n_layer", fmt::format("{}", model.shape.n_layer)},
                            {"n_head", fmt::format("{}", model.shape.n_head)},
                            {"block_size", fmt::format("{}", model.shape.block_size)},
                            {"characters", to_utf8(model.alphabet.characters())}};
  const int64_t size = type == SavedType::kF64 ? 8 : 4;
  for (const auto& [name, matrix] : matrices.named()) {
    header[name] = {
        {"dtype", type == SavedType::kF64 ? "F64" : "F32"},
        {"shape", {matrix.rows, matrix.cols}},
        {"data_offsets", {matrix.offset * size, (matrix.offset + matrix.size()) * size}}};
  }
  return header;
}

template <typename T>
void write_numbers(AtomicFile& file, const std::vector<double>& numbers) {
  std::vector<T> converted(numbers.begin(), numbers.end());
  file.write({reinterpret_cast<const char*>(converted.data()), converted.size() * sizeof(T)});
}

}  // namespace

void save_model(const std::string& path, const SavedModel& model, SavedType type) {
  const Matrices matrices(model.shape);
  LIMPID_CHECK(ShapeError, std::ssize(model.weights) == matrices.n_params,
               "{} weights do not fit a model of {} parameters", model.weights.size(),
               matrices.n_params);
  std::string header = header_of(model, matrices, type).dump();
  header.append((kLengthBytes - header.size() % kLengthBytes) % kLengthBytes, ' ');
  const uint64_t length = header.size();
  std::array<char, kLengthBytes> length_bytes{};
  std::memcpy(length_bytes.data(), &length, kLengthBytes);
  AtomicFile file(path);
  file.write({length_bytes.data(), length_bytes.size()});
  file.write(header);
  if (type == SavedType::kF64) {
    write_numbers<double>(file, model.weights);
  } else {
    write_numbers<float>(file, model.weights);
  }
  file.commit();
}

SavedModel load_model(const std::string& path) {
  const auto file = MappedFile::open(path);
  const Source source{path};
  const auto bytes = file->bytes();
  uint64_t length = 0;
  if (bytes.size() < kLengthBytes) source.fail("header", "the file is shorter than 8 bytes");
  std::memcpy(&length, bytes.data(), kLengthBytes);
  if (length > kMaxHeader || length > bytes.size() - kLengthBytes) {
    source.fail("header", fmt::format("its length of {} bytes does not fit", length));
  }
  const char* text = reinterpret_cast<const char*>(bytes.data()) + kLengthBytes;
  const Json header = Json::parse(text, text + length, nullptr, false);
  if (!header.is_object()) source.fail("header", "is not a JSON object");
  SavedModel model = read_metadata(source, header);
  const auto data = bytes.subspan(kLengthBytes + length);
  for (const Matrices::Named& named : Matrices(model.shape).named()) {
    bool is_f64 = false;
    const auto numbers = tensor_bytes(source, header, named, data, is_f64);
    if (is_f64) {
      append_numbers<double>(numbers, model.weights);
    } else {
      append_numbers<float>(numbers, model.weights);
    }
  }
  return model;
}

}  // namespace limpid::microgpt
