#include "checkpoint/torch_writer.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "base/check.h"
#include "checkpoint/byte_reader.h"
#include "checkpoint/pickle_opcodes.h"
#include "checkpoint/zip_layout.h"

namespace limpid {
namespace {

constexpr uint64_t kAlignment = 64;
constexpr const char* kRoot = "archive/";
// The versions that torch.save states: made by a Unix program of zip version 3.0, readable by one
// of 4.5, the first with zip64.
constexpr uint16_t kMadeBy = 0x031e;
constexpr uint16_t kVersionOfZip64 = 45;

// ---- the pickle ---------------------------------------------------------------------------------

// BINUNICODE, a length (u32), UTF-8.
void put_text(std::string& out, std::string_view text) {
  put(out, PickleOpcode::kBinUnicode);
  put(out, static_cast<uint32_t>(text.size()));
  out += text;
}

// BININT holds 32 bits. Negative and larger numbers are written as a LONG1 of 8 bytes.
void put_integer(std::string& out, int64_t value) {
  if (value >= 0 && value <= std::numeric_limits<int32_t>::max()) {
    put(out, PickleOpcode::kBinInt);
    put(out, static_cast<int32_t>(value));
  } else {
    put(out, PickleOpcode::kLong1);
    put(out, uint8_t{sizeof(value)});
    put(out, value);
  }
}

void put_integers(std::string& out, std::span<const int64_t> values) {
  put(out, PickleOpcode::kMark);
  for (const int64_t value : values) put_integer(out, value);
  put(out, PickleOpcode::kTuple);
}

// GLOBAL, module, line feed, name, line feed. The constants have a space between module and name.
void put_global(std::string& out, std::string_view module_and_name) {
  put(out, PickleOpcode::kGlobal);
  out += module_and_name;
  std::replace(out.end() - static_cast<ptrdiff_t>(module_and_name.size()), out.end(), ' ', '\n');
  out += '\n';
}

void put_empty_ordered_dict(std::string& out) {
  put_global(out, kPickleOrderedDict);
  put(out, PickleOpcode::kEmptyTuple);
  put(out, PickleOpcode::kReduce);
}

// The instructions for _rebuild_tensor_v2(("storage", class, key, "cpu", n_elements), 0, sizes,
// strides, False, {}).
void put_tensor(std::string& out, const TorchEntry& entry, size_t storage) {
  put_global(out, kPickleRebuildTensor);
  put(out, PickleOpcode::kMark);
  put(out, PickleOpcode::kMark);
  put_text(out, "storage");
  put_global(out, *pickle_storage_name(entry.dtype));
  put_text(out, std::to_string(storage));
  put_text(out, "cpu");
  put_integer(out, entry.shape.n_elements());
  put(out, PickleOpcode::kTuple);
  put(out, PickleOpcode::kBinPersId);
  put_integer(out, 0);
  put_integers(out, entry.shape.dims());
  std::vector<int64_t> strides(static_cast<size_t>(entry.shape.rank()), 1);
  for (size_t i = strides.size(); i-- > 1;)
    strides[i - 1] = strides[i] * entry.shape[static_cast<int>(i)];
  put_integers(out, strides);
  put(out, PickleOpcode::kNewFalse);
  put_empty_ordered_dict(out);
  put(out, PickleOpcode::kTuple);
  put(out, PickleOpcode::kReduce);
}

// BINFLOAT, and the number with its highest byte first.
void put_real(std::string& out, double value) {
  put(out, PickleOpcode::kBinFloat);
  std::string bytes;
  put(bytes, value);
  out.append(bytes.rbegin(), bytes.rend());
}

// Objects, numbers, text, true and false.
void put_json(std::string& out, const nlohmann::ordered_json& json) {
  if (json.is_object()) {
    put(out, PickleOpcode::kEmptyDict);
    put(out, PickleOpcode::kMark);
    for (const auto& [key, value] : json.items()) {
      put_text(out, key);
      put_json(out, value);
    }
    put(out, PickleOpcode::kSetItems);
  } else if (json.is_boolean()) {
    put(out, json.get<bool>() ? PickleOpcode::kNewTrue : PickleOpcode::kNewFalse);
  } else if (json.is_number_integer()) {
    put_integer(out, json.get<int64_t>());
  } else if (json.is_number()) {
    put_real(out, json.get<double>());
  } else {
    put_text(out, json.get_ref<const std::string&>());
  }
}

// An OrderedDict with all entries. An entry that shares the bytes of another names that entry's
// storage.
void put_state(std::string& out, std::span<const TorchEntry> entries) {
  put_empty_ordered_dict(out);
  put(out, PickleOpcode::kMark);
  for (size_t i = 0; i < entries.size(); ++i) {
    put_text(out, entries[i].name);
    put_tensor(out, entries[i],
               entries[i].same_as < 0 ? i : static_cast<size_t>(entries[i].same_as));
  }
  put(out, PickleOpcode::kSetItems);
}

std::string make_pickle(std::span<const TorchEntry> entries, const nlohmann::ordered_json* beside) {
  std::string out;
  put(out, PickleOpcode::kProto);
  put(out, uint8_t{2});
  if (beside == nullptr) {
    put_state(out, entries);
  } else {
    put_json(out, *beside);
    put(out, PickleOpcode::kMark);
    put_text(out, "model");
    put_state(out, entries);
    put(out, PickleOpcode::kSetItems);
  }
  put(out, PickleOpcode::kStop);
  return out;
}

// Only an earlier entry of the same shape and type that has bytes of its own can be shared.
void check_entries(std::span<const TorchEntry> entries) {
  std::unordered_set<std::string_view> names;
  for (size_t i = 0; i < entries.size(); ++i) {
    const TorchEntry& entry = entries[i];
    LIMPID_CHECK(ArgumentError, !entry.name.empty(), "a tensor has no name");
    LIMPID_CHECK(ArgumentError, names.insert(entry.name).second, "two tensors are named '{}'",
                 entry.name);
    LIMPID_CHECK(UnsupportedError, pickle_storage_name(entry.dtype).has_value(),
                 "'{}' is {}, for which PyTorch has no storage", entry.name,
                 dtype_info(entry.dtype).name);
    if (entry.same_as < 0) continue;
    const auto other = static_cast<size_t>(entry.same_as);
    LIMPID_CHECK(ArgumentError,
                 other < i && entries[other].same_as < 0 && entries[other].dtype == entry.dtype &&
                     entries[other].shape == entry.shape,
                 "'{}' cannot be the same as entry {}", entry.name, entry.same_as);
  }
}

// ---- the archive --------------------------------------------------------------------------------

bool needs_64(uint64_t value) { return value >= kZipIn64; }

// The value of a 32-bit size field: the size, or the sentinel that refers to the zip64 field.
uint32_t low(uint64_t value) { return needs_64(value) ? kZipIn64 : static_cast<uint32_t>(value); }

}  // namespace

// The pickle names storages by number and states their sizes, so it can be written before their
// bytes.
TorchWriter::TorchWriter(const std::string& path, std::vector<TorchEntry> entries,
                         const nlohmann::ordered_json* beside)
    : file_(path), entries_(std::move(entries)) {
  check_entries(entries_);
  add_record("data.pkl", make_pickle(entries_, beside));
  add_record("byteorder", "little");
  begin_next_tensor();
}

// A piece may end one tensor and begin the next, so it is cut at the borders of records.
void TorchWriter::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    LIMPID_CHECK(ArgumentError, open_, "{} bytes more than the tensors have", bytes.size());
    const auto n =
        static_cast<size_t>(std::min<uint64_t>(bytes.size(), records_.back().size - n_written_));
    file_.write(bytes.first(n));
    records_.back().crc32 = zip_crc32(bytes.first(n), records_.back().crc32);
    n_written_ += n;
    bytes = bytes.subspan(n);
    if (n_written_ < records_.back().size) continue;
    end_record();
    begin_next_tensor();
  }
}

void TorchWriter::commit() {
  LIMPID_CHECK(ArgumentError, !open_, "the bytes of {} are not complete",
               entries_[next_entry_ - 1].name);
  add_record("version", "3\n");
  write_directory();
  file_.commit();
}

// Opens the record of the next tensor that has bytes. The record of a tensor without bytes is
// complete at once.
void TorchWriter::begin_next_tensor() {
  while (next_entry_ < entries_.size()) {
    const size_t i = next_entry_++;
    if (entries_[i].same_as >= 0) continue;
    begin_record(fmt::format("data/{}", i), tensor_bytes(entries_[i].dtype, entries_[i].shape));
    if (records_.back().size > 0) return;
    end_record();
  }
}

// Writes a small record whose content is known.
void TorchWriter::add_record(const std::string& name, std::string_view content) {
  begin_record(name, content.size());
  file_.write(content);
  records_.back().crc32 = zip_crc32(std::as_bytes(std::span(content)));
  end_record();
}

// Writes a local header. The checksum is not known before the data have been written, so CRC and
// sizes are 0 here and follow the data in a descriptor. An extra field pads the header so that the
// data begin at a multiple of 64 bytes, as torch.save does; readers can then map them.
void TorchWriter::begin_record(const std::string& name, uint64_t size) {
  Record record{kRoot + name, size, file_.size(), 0};
  constexpr uint64_t kPaddingHeader = 4;
  const uint64_t unpadded =
      record.header_offset + sizeof(ZipLocalHeader) + record.name.size() + kPaddingHeader;
  const uint64_t padding = (kAlignment - unpadded % kAlignment) % kAlignment;
  std::string header;
  put(header, ZipLocalHeader{.version = kVersionOfZip64,
                             .flags = kZipHasDescriptor | kZipUtf8,
                             .n_name = static_cast<uint16_t>(record.name.size()),
                             .n_extra = static_cast<uint16_t>(kPaddingHeader + padding)});
  header += record.name;
  header += "FB";  // the extra field that PyTorch pads with
  put(header, static_cast<uint16_t>(padding));
  header.append(padding, 'Z');
  file_.write(header);
  records_.push_back(std::move(record));
  open_ = true;
  n_written_ = 0;
}

// Writes the data descriptor: signature, CRC-32, then both sizes, in 64 bits where needed.
void TorchWriter::end_record() {
  const Record& record = records_.back();
  std::string descriptor;
  put(descriptor, kZipDescriptorSignature);
  put(descriptor, record.crc32);
  for (int i = 0; i < 2; ++i)  // compressed and as it is: the same
    needs_64(record.size) ? put(descriptor, record.size) : put(descriptor, low(record.size));
  file_.write(descriptor);
  open_ = false;
}

// Writes the directory and the three records at the end of the file: the zip64 end record, the
// locator that points to it, and the end record. Sizes and offsets beyond 32 bits are in zip64
// fields.
void TorchWriter::write_directory() {
  const uint64_t start = file_.size();
  std::string out;
  for (const Record& record : records_) {
    std::string extra;
    if (needs_64(record.size)) {
      put(extra, record.size);
      put(extra, record.size);
    }
    if (needs_64(record.header_offset)) put(extra, record.header_offset);
    put(out, ZipEntryHeader{.made_by = kMadeBy,
                            .version = kVersionOfZip64,
                            .flags = kZipHasDescriptor | kZipUtf8,
                            .crc32 = record.crc32,
                            .compressed_size = low(record.size),
                            .size = low(record.size),
                            .n_name = static_cast<uint16_t>(record.name.size()),
                            .n_extra = static_cast<uint16_t>(extra.empty() ? 0 : extra.size() + 4),
                            .header_offset = low(record.header_offset)});
    out += record.name;
    if (extra.empty()) continue;
    put(out, kZip64ExtraId);
    put(out, static_cast<uint16_t>(extra.size()));
    out += extra;
  }
  const uint64_t n_bytes = out.size();
  const uint64_t n_records = records_.size();
  put(out, Zip64EndRecord{.made_by = kMadeBy,
                          .version = kVersionOfZip64,
                          .entries_here = n_records,
                          .entries = n_records,
                          .directory_size = n_bytes,
                          .directory_offset = start});
  put(out, Zip64Locator{.offset = start + n_bytes});
  const auto count = static_cast<uint16_t>(std::min<uint64_t>(n_records, kZipCountIn64));
  put(out, ZipEndRecord{.entries_here = count,
                        .entries = count,
                        .directory_size = low(n_bytes),
                        .directory_offset = low(start)});
  file_.write(out);
}

}  // namespace limpid
