// Archives as torch.save writes them, with every field open to be spoilt.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/zip_layout.h"

namespace limpid::torch_test {

template <typename T>
std::string number(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof(T)};
}

// ---- pickles: instructions as text --------------------------------------------------------------

inline std::string text(std::string_view value) {
  return "X" + number(static_cast<uint32_t>(value.size())) + std::string(value);
}
inline std::string integer(int32_t value) { return "J" + number(value); }
inline std::string long_integer(int64_t value) { return "\x8a\x08" + number(value); }
inline std::string global(const std::string& module, const std::string& name) {
  return "c" + module + "\n" + name + "\n";
}
inline const std::string kProto = "\x80\x02";
inline const std::string kOrderedDict = global("collections", "OrderedDict") + ")R";
inline std::string tuple(const std::vector<int32_t>& values) {
  std::string items;
  for (const int32_t value : values) items += integer(value);
  return "(" + items + "t";
}

struct TensorSketch {
  std::string storage = "FloatStorage";
  std::string key = text("0");
  int32_t n_stored = 6;
  std::string offset = integer(0);
  std::string sizes = tuple({2, 3});
  std::string strides = tuple({3, 1});
  std::string more = "\x89" + kOrderedDict;  // requires_grad, hooks
};

inline std::string serialize(const TensorSketch& sketch) {
  return global("torch._utils", "_rebuild_tensor_v2") + "((" + text("storage") +
         global("torch", sketch.storage) + sketch.key + text("cpu") + integer(sketch.n_stored) +
         "tQ" + sketch.offset + sketch.sizes + sketch.strides + sketch.more + "tR";
}

// {"w": tensor}
inline std::string state_dict(const std::string& tensor, const std::string& key = "w") {
  return kProto + kOrderedDict + "(" + text(key) + tensor + "u.";
}

// ---- archives -----------------------------------------------------------------------------------

// What a local header or directory entry says when it is not the truth.
struct HeaderSketch {
  std::optional<uint32_t> signature;
  std::optional<std::string> name;
  std::optional<uint16_t> flags;
  std::optional<uint16_t> method;
  std::optional<uint32_t> crc32;
  std::optional<uint32_t> compressed;
  std::optional<uint32_t> size;
  std::string extra;
};

struct RecordSketch {
  std::string name;
  std::string content;
  bool open = true;  // sizes after the data, as torch.save has them
  HeaderSketch local{};
  HeaderSketch entry{};
  std::optional<uint32_t> header_offset{};  // of the entry
  std::optional<std::string> descriptor{};  // instead of the right one
  std::string before{};                     // bytes before the local header
};

struct ZipSketch {
  std::vector<RecordSketch> records;
  bool zip64 = true;
  std::string comment;
  std::string after;  // bytes after the directory
  std::optional<uint16_t> n_entries, n_entries_here, comment_length;
  std::optional<uint32_t> directory_bytes, directory_offset;
  std::optional<uint64_t> n_entries64, directory_bytes64, directory_offset64, end64_offset,
      end64_bytes;

  void add(const std::string& name, const std::string& content) {
    records.push_back({"m/" + name, content});
  }
};

inline uint32_t crc_of(std::string_view content) {
  return zip_crc32(std::as_bytes(std::span(content)));
}

inline std::string descriptor_of(const std::string& content) {
  const auto n = static_cast<uint32_t>(content.size());
  return number(kZipDescriptorSignature) + number(crc_of(content)) + number(n) + number(n);
}

inline std::string local_header(const RecordSketch& record) {
  const HeaderSketch& h = record.local;
  const std::string name = h.name.value_or(record.name);
  const auto n = record.open ? 0 : static_cast<uint32_t>(record.content.size());
  const uint16_t flags = record.open ? kZipHasDescriptor | kZipUtf8 : 0;
  return number(h.signature.value_or(kZipLocalSignature)) + number(uint16_t{0}) +
         number(h.flags.value_or(flags)) + number(h.method.value_or(0)) + number(uint32_t{0}) +
         number(h.crc32.value_or(record.open ? 0 : crc_of(record.content))) +
         number(h.compressed.value_or(n)) + number(h.size.value_or(n)) +
         number(static_cast<uint16_t>(name.size())) +
         number(static_cast<uint16_t>(h.extra.size())) + name + h.extra;
}

inline std::string directory_entry(const RecordSketch& record, uint64_t offset) {
  const HeaderSketch& h = record.entry;
  const std::string name = h.name.value_or(record.name);
  const auto n = static_cast<uint32_t>(record.content.size());
  const uint16_t flags = record.open ? kZipHasDescriptor | kZipUtf8 : 0;
  return number(h.signature.value_or(kZipEntrySignature)) + number(uint32_t{0}) +
         number(h.flags.value_or(flags)) + number(h.method.value_or(0)) + number(uint32_t{0}) +
         number(h.crc32.value_or(crc_of(record.content))) + number(h.compressed.value_or(n)) +
         number(h.size.value_or(n)) + number(static_cast<uint16_t>(name.size())) +
         number(static_cast<uint16_t>(h.extra.size())) + std::string(2 + 2 + 2 + 4, '\0') +
         number(record.header_offset.value_or(static_cast<uint32_t>(offset))) + name + h.extra;
}

inline std::string serialize(const ZipSketch& zip) {
  std::string out, directory;
  for (const RecordSketch& record : zip.records) {
    out += record.before;
    directory += directory_entry(record, out.size());
    out += local_header(record) + record.content;
    if (record.descriptor || record.open)
      out += record.descriptor.value_or(descriptor_of(record.content));
  }
  const uint64_t start = out.size();
  const uint64_t n_bytes = directory.size();
  const uint64_t n = zip.records.size();
  out += directory + zip.after;
  if (zip.zip64) {
    const uint64_t end64 = out.size();
    out += number(kZip64EndSignature) +
           number(zip.end64_bytes.value_or(sizeof(Zip64EndRecord) - 12)) + std::string(12, '\0') +
           number(zip.n_entries64.value_or(n)) + number(zip.n_entries64.value_or(n)) +
           number(zip.directory_bytes64.value_or(n_bytes)) +
           number(zip.directory_offset64.value_or(start));
    out += number(kZip64LocatorSignature) + number(uint32_t{0}) +
           number(zip.end64_offset.value_or(end64)) + number(uint32_t{1});
  }
  const auto n16 = zip.n_entries.value_or(static_cast<uint16_t>(n));
  return out + number(kZipEndSignature) + number(uint32_t{0}) +
         number(zip.n_entries_here.value_or(n16)) + number(n16) +
         number(zip.directory_bytes.value_or(static_cast<uint32_t>(n_bytes))) +
         number(zip.directory_offset.value_or(static_cast<uint32_t>(start))) +
         number(zip.comment_length.value_or(static_cast<uint16_t>(zip.comment.size()))) +
         zip.comment;
}

// A checkpoint of one tensor: 2 rows of 3, the numbers 0 to 5.
inline std::string floats(int n) {
  std::string bytes;
  for (int i = 0; i < n; ++i) bytes += number(static_cast<float>(i));
  return bytes;
}

inline ZipSketch archive_of(const std::string& pickle) {
  ZipSketch zip;
  zip.add("data.pkl", pickle);
  zip.add("byteorder", "little");
  zip.add("data/0", floats(6));
  zip.add("version", "3\n");
  return zip;
}

inline ZipSketch small_archive() { return archive_of(state_dict(serialize(TensorSketch{}))); }

}  // namespace limpid::torch_test
