#include "checkpoint/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/checked.h"
#include "base/foreign_file.h"
#include "base/json_file.h"
#include "base/printable.h"
#include "checkpoint/byte_reader.h"
#include "checkpoint/safetensors_dtype.h"
#include "limpid/error.hpp"

namespace limpid {
namespace {

constexpr uint64_t kLengthBytes = 8;

std::string label_of(std::string_view name) { return fmt::format("tensor '{}'", printable(name)); }

// Reads the header in three steps: its text is bounded and scanned, each entry is checked on its
// own, then all entries are checked against the data and get their addresses. A file that passes
// leaves no room for interpretation: each byte belongs to the length, the header or exactly one
// tensor.
class HeaderReader {
 public:
  HeaderReader(const std::string& path, std::span<const std::byte> bytes)
      : path_(path), reader_(path, bytes) {}

  // A wrong length is often the first sign that the file is something else, so the message may name
  // that.
  SafetensorsFile read() {
    const auto length = reader_.number<uint64_t>("header.length");
    if (length > kSafetensorsLongestHeader) {
      refuse_foreign(path_, text_of(reader_.bytes()));
      reader_.fail(0, "header.length", "{} bytes, at most {}; this is not a safetensors file",
                   length, kSafetensorsLongestHeader);
    }
    const std::string_view header = reader_.take(length, "header");
    if (!header.starts_with('{')) reader_.fail(kLengthBytes, "header", "does not begin with '{{'");
    refuse_minus(header);
    data_begin_ = reader_.offset();
    SafetensorsFile file;
    parse(header, file);
    check_data(file.tensors);
    return file;
  }

 private:
  template <typename... Args>
  [[noreturn]] void fail_header(std::string_view field, fmt::format_string<Args...> problem,
                                Args&&... args) const {
    reader_.fail(kLengthBytes, field, problem, std::forward<Args>(args)...);
  }

  // Every number of the header is a size, so none has a minus sign. The reader of sizes refuses all
  // negative numbers but "-0", which the JSON parser turns into the integer 0. This scan finds it.
  void refuse_minus(std::string_view header) const {
    bool in_string = false;
    for (size_t i = 0; i < header.size(); ++i) {
      if (in_string && header[i] == '\\') {
        ++i;
      } else if (header[i] == '"') {
        in_string = !in_string;
      } else if (!in_string && header[i] == '-') {
        reader_.fail(kLengthBytes + i, "header", "has a negative number");
      }
    }
  }

  // JsonFile reports places by name ("tensor 'x'.shape"). The errors of this reader also have an
  // offset, that of the header.
  void parse(std::string_view header, SafetensorsFile& file) const {
    try {
      const JsonFile json(path_, header);
      refuse_duplicate_keys(json);
      for (const auto& [name, value] : json.root().object()) {
        if (name == kSafetensorsMetadata) {
          read_metadata({path_, std::string(kSafetensorsMetadata), value}, file.metadata);
        } else {
          file.tensors.push_back(read_entry(std::string(name), {path_, label_of(name), value}));
        }
      }
    } catch (const FormatError& error) {
      if (error.offset() != FormatError::kNoOffset) throw;
      // JsonFile's errors have no offset: add it. Their message is "path: field: problem", or "path
      // problem" about the whole text.
      const bool is_whole = error.field() == "file";
      const size_t begin = path_.size() + (is_whole ? 1 : 2 + error.field().size() + 2);
      fail_header(is_whole ? "header" : error.field(), "{}", error.what() + begin);
    }
  }

  // __metadata__ may hold strings only.
  static void read_metadata(const JsonPlace& place, std::map<std::string, std::string>& metadata) {
    if (place.is_null()) return;
    for (const auto& [key, value] : place.object()) {
      const JsonPlace item(place.file(), fmt::format("{}.{}", kSafetensorsMetadata, printable(key)),
                           value);
      metadata[std::string(key)] = std::string(item.string());
    }
  }

  static int64_t size(const JsonPlace& place) {
    const int64_t value = place.integer();
    if (value < 0) place.fail("is negative");
    return value;
  }

  // Checks an entry on its own: name, fields and offsets.
  SafetensorsTensor read_entry(std::string name, const JsonPlace& place) const {
    if (name.empty() || !is_clean_utf8(name))
      fail_header(place.name(), "the name must be UTF-8 without NUL, and not empty");
    place.allow_keys({"dtype", "shape", "data_offsets"});
    const std::vector<JsonPlace> offsets = place["data_offsets"].elements();
    if (offsets.size() != 2) place["data_offsets"].fail("is not a pair of offsets");
    const auto begin = static_cast<uint64_t>(size(offsets[0]));
    const auto end = static_cast<uint64_t>(size(offsets[1]));
    if (end < begin) place["data_offsets"].fail("ends before it begins");
    return {std::move(name), read_type(place, end - begin), begin};
  }

  // Reads dtype and shape. Together they must give the length of the data. The view has no address.
  TensorView read_type(const JsonPlace& place, uint64_t n_bytes) const {
    const JsonPlace dtype_place = place["dtype"];
    const SafetensorsDType* dtype = safetensors_dtype(dtype_place.string());
    if (dtype == nullptr) dtype_place.fail("unknown dtype '{}'", printable(dtype_place.string()));
    const JsonPlace shape_place = place["shape"];
    std::vector<int64_t> dims;
    int64_t n_elements = 1;
    for (const JsonPlace& dim : shape_place.elements()) {
      dims.push_back(size(dim));
      const auto product = checked_mul(n_elements, dims.back());
      if (!product) dim.fail("gives too many elements");
      n_elements = *product;
    }
    const auto n_bits = checked_mul<uint64_t>(static_cast<uint64_t>(n_elements), dtype->bits);
    if (!n_bits) shape_place.fail("gives more than 2^64 bits");
    if (*n_bits % 8 != 0) shape_place.fail("of {} ends within a byte", dtype->name);
    if (*n_bits / 8 != n_bytes) {
      place["data_offsets"].fail("hold {} bytes, but dtype and shape need {}", n_bytes,
                                 *n_bits / 8);
    }
    if (!dtype->dtype) {
      dtype_place.unsupported("{} is not read; use F32, F16 or BF16 weights", dtype->name);
    }
    if (dims.size() > static_cast<size_t>(Shape::kMaxRank)) {
      shape_place.unsupported("has {} dimensions, at most {} are read", dims.size(),
                              Shape::kMaxRank);
    }
    return {*dtype->dtype, Shape(dims), nullptr};
  }

  // The tensors must fill the data section one after another: sorted by offset, each begins where
  // the one before it ends, and the last ends at the end of the file. A tensor without elements may
  // be at any such border. Gives each tensor its address, and its offset in the file in place of
  // that in the data section.
  void check_data(std::vector<SafetensorsTensor>& tensors) {
    std::ranges::sort(tensors, {}, [](const SafetensorsTensor& tensor) {
      return std::pair(tensor.data_offset, tensor.view.n_bytes());
    });
    const uint64_t n_bytes = reader_.remaining();
    uint64_t expected = 0;
    for (SafetensorsTensor& tensor : tensors) {
      const uint64_t begin = tensor.data_offset;
      if (begin != expected) {
        fail_header(
            label_of(tensor.name) + ".data_offsets", "begin at {}, {} {}", begin,
            begin < expected ? "overlapping the tensor that ends at" : "leaving a hole after",
            expected);
      }
      expected = begin + tensor.view.n_bytes();
      if (expected > n_bytes) {
        fail_header(label_of(tensor.name) + ".data_offsets",
                    "end at {}, but the file has {} bytes of data; is the download complete?",
                    expected, n_bytes);
      }
      tensor.data_offset += data_begin_;
      tensor.view.data = reinterpret_cast<const std::byte*>(
          reader_.take(tensor.view.n_bytes(), label_of(tensor.name)).data());
    }
    if (expected != n_bytes) {
      reader_.fail(data_begin_ + expected, "data", "{} bytes follow the last tensor",
                   n_bytes - expected);
    }
  }

  const std::string& path_;
  ByteReader reader_;
  uint64_t data_begin_ = 0;
};

}  // namespace

// A header of 4 GiB or more is not plausible; such a file is something else.
bool looks_like_safetensors(std::span<const std::byte> bytes) {
  if (bytes.size() <= kLengthBytes || bytes[kLengthBytes] != std::byte{'{'}) return false;
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), kLengthBytes);
  return length < (uint64_t{1} << 32);
}

SafetensorsFile parse_safetensors(const std::string& path, std::span<const std::byte> bytes) {
  return HeaderReader(path, bytes).read();
}

std::map<std::string, std::string> append_safetensors(Checkpoint& checkpoint,
                                                      const std::string& path) {
  auto mapped = MappedFile::open(path);
  SafetensorsFile file = parse_safetensors(path, mapped->bytes());
  for (const SafetensorsTensor& tensor : file.tensors) {
    if (checkpoint.find(tensor.name) != nullptr) {
      throw FormatError(path, tensor.data_offset, label_of(tensor.name),
                        "is also in another file of the model");
    }
    checkpoint.add_view(tensor.name, tensor.view);
  }
  checkpoint.files.push_back(std::move(mapped));
  return std::move(file.metadata);
}

Checkpoint open_safetensors(const std::string& path) {
  Checkpoint checkpoint;
  checkpoint.path = path;
  checkpoint.format = "safetensors";
  checkpoint.naming = Naming::kStateDict;
  for (auto& [key, value] : append_safetensors(checkpoint, path))
    checkpoint.metadata.set("safetensors." + key, {std::move(value), "string"});
  return checkpoint;
}

}  // namespace limpid
