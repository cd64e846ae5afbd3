#include "checkpoint/zip_archive.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <optional>

#include "base/check.h"
#include "base/printable.h"
#include "checkpoint/byte_reader.h"
#include "checkpoint/zip_layout.h"

namespace limpid {
namespace {

// Where the directory is, and how many entries it has.
struct Directory {
  uint64_t offset = 0;
  uint64_t n_bytes = 0;
  uint64_t n_entries = 0;
};

// What the directory says about a record.
struct Entry : ZipRecord {
  uint64_t entry_offset = 0;
  uint16_t flags = 0;
  uint16_t method = 0;
  uint64_t compressed_size = 0;
};

// A number of the end record. `small` is its value there and `wide` its value in the zip64 record,
// if there is one. The two must agree unless `small` is the sentinel for "see the zip64 record": an
// archive with 70,000 records states 0xffff in the end record and 70,000 in the zip64 record.
uint64_t agreed(const ByteReader& reader, uint64_t offset, const char* field, uint64_t small,
                uint64_t sentinel, std::optional<uint64_t> wide) {
  if (!wide && small == sentinel)
    reader.fail(offset, field, "points to a zip64 record that is missing");
  if (wide && small != sentinel && small != *wide) {
    reader.fail(offset, field, "is {}, but {} in the zip64 record", small, *wide);
  }
  return wide ? *wide : small;
}

// Throws FormatError unless a field of the file has the one value that is possible.
void require(ByteReader& reader, uint64_t offset, const char* field, uint64_t value,
             uint64_t expected) {
  if (value != expected) reader.fail(offset, field, "is {}, expected {}", value, expected);
}

// Reads the zip64 end record. The three records at the end of a large archive are, in this order:
// the zip64 end record, its locator, the end record. The locator is recognised by its signature;
// without it the archive has no zip64 end record.
std::optional<Directory> read_zip64_end(ByteReader& reader, uint64_t end) {
  if (end < sizeof(Zip64Locator) + sizeof(Zip64EndRecord)) return std::nullopt;
  const uint64_t at = end - sizeof(Zip64Locator);
  reader.seek(at, "zip64 locator");
  const auto locator = reader.number<Zip64Locator>("zip64 locator");
  if (locator.signature != kZip64LocatorSignature) return std::nullopt;
  const uint64_t start = at - sizeof(Zip64EndRecord);
  require(reader, at + 4, "zip64 locator.disk", locator.disk, 0);
  require(reader, at + 8, "zip64 locator.offset", locator.offset, start);
  require(reader, at + 16, "zip64 locator.disks", locator.disks, 1);
  reader.seek(start, "zip64 end record");
  const auto record = reader.number<Zip64EndRecord>("zip64 end record");
  require(reader, start, "zip64 end record.signature", record.signature, kZip64EndSignature);
  require(reader, start + 4, "zip64 end record.size", record.n_bytes, Zip64EndRecord{}.n_bytes);
  require(reader, start + 16, "zip64 end record.disk", record.disk | record.directory_disk, 0);
  require(reader, start + 32, "zip64 end record.entries", record.entries, record.entries_here);
  return Directory{record.directory_offset, record.directory_size, record.entries};
}

// Reads the records at the end of the file. The end record must be the last bytes, without a
// comment: most readers search backwards for its signature, and a comment could contain a second
// one.
Directory read_end(ByteReader& reader) {
  const uint64_t n = reader.size();
  if (n < sizeof(ZipEndRecord))
    reader.fail(0, "end record", "is missing; is the download complete?");
  const uint64_t end = n - sizeof(ZipEndRecord);
  reader.seek(end, "end record");
  const auto record = reader.number<ZipEndRecord>("end record");
  if (record.signature != kZipEndSignature) {
    reader.fail(end, "end record",
                "is not at the end of the file: the download is incomplete, or bytes or a comment "
                "follow the archive");
  }
  const std::optional<Directory> wide = read_zip64_end(reader, end);
  require(reader, end + 4, "end record.disk", record.disk | record.directory_disk, 0);
  require(reader, end + 8, "end record.entries_here", record.entries_here, record.entries);
  require(reader, end + 20, "end record.comment_length", record.n_comment, 0);
  const auto of = [&](uint64_t Directory::*member) {
    return wide ? std::optional((*wide).*member) : std::nullopt;
  };
  Directory directory;
  directory.n_entries = agreed(reader, end + 10, "end record.entries", record.entries,
                               kZipCountIn64, of(&Directory::n_entries));
  directory.n_bytes = agreed(reader, end + 12, "end record.directory_size", record.directory_size,
                             kZipIn64, of(&Directory::n_bytes));
  directory.offset = agreed(reader, end + 16, "end record.directory_offset",
                            record.directory_offset, kZipIn64, of(&Directory::offset));
  const uint64_t directory_end = wide ? end - sizeof(Zip64Locator) - sizeof(Zip64EndRecord) : end;
  if (directory.offset > directory_end || directory.n_bytes != directory_end - directory.offset) {
    reader.fail(end + 12, "end record.directory_size",
                "{} bytes from byte {} do not end at byte {}, where the directory must end",
                directory.n_bytes, directory.offset, directory_end);
  }
  if (directory.n_entries > directory.n_bytes / sizeof(ZipEntryHeader)) {
    reader.fail(end + 10, "end record.entries", "{} entries do not fit in {} bytes",
                directory.n_entries, directory.n_bytes);
  }
  return directory;
}

// The numbers of the zip64 field, if there is one.
using Zip64Numbers = std::optional<std::vector<uint64_t>>;

// Finds the zip64 field among the extra fields `extra`, which begin at `offset`. Each is an id
// (u16), a length (u16) and that many bytes.
Zip64Numbers find_zip64_extra(const ByteReader& reader, uint64_t offset, std::string_view extra) {
  ByteReader fields(reader.path(), std::as_bytes(std::span(extra)));
  Zip64Numbers found;
  while (fields.remaining() > 0) {
    const uint64_t at = offset + fields.offset();
    if (fields.remaining() < 4) reader.fail(at, "extra field", "is truncated");
    const auto id = fields.number<uint16_t>("extra field.id");
    const auto n = fields.number<uint16_t>("extra field.size");
    if (n > fields.remaining())
      reader.fail(at, "extra field.size", "{} reaches beyond the extra fields", n);
    const std::string_view content = fields.take(n, "extra field");
    if (id != kZip64ExtraId) continue;
    if (found) reader.fail(at, "extra field", "is a second zip64 field");
    if (n % sizeof(uint64_t) != 0) reader.fail(at, "zip64 field", "of {} bytes is truncated", n);
    found.emplace(n / sizeof(uint64_t));
    std::memcpy(found->data(), content.data(), n);
  }
  return found;
}

// Replaces each of `values` that is the zip64 sentinel by the next number of the zip64 field. The
// field must hold exactly these numbers, in the order size, compressed size, offset. A record of 5
// GiB at offset 100 has both sizes 0xffffffff and a field of two u64; its offset fits and is not in
// the field.
void resolve_zip64(const ByteReader& reader, uint64_t offset, const Zip64Numbers& extra,
                   std::initializer_list<uint64_t*> values) {
  const auto n_wanted = static_cast<size_t>(
      std::ranges::count_if(values, [](const uint64_t* value) { return *value == kZipIn64; }));
  if (n_wanted == 0 && !extra) return;
  if (!extra) reader.fail(offset, "zip64 field", "is missing");
  if (extra->size() != n_wanted) {
    reader.fail(offset, "zip64 field", "has {} bytes, expected {}", extra->size() * 8,
                n_wanted * 8);
  }
  auto next = extra->begin();
  for (uint64_t* value : values) {
    if (*value == kZipIn64) *value = *next++;
  }
}

// Refuses what this reader does not decode: encryption, unknown flags, other compression methods.
void check_method(const ByteReader& reader, const Entry& entry, ZipMethods methods) {
  const std::string place = fmt::format("{}: at byte {}: the record {}", reader.path(),
                                        entry.entry_offset, printable(entry.name));
  LIMPID_CHECK(UnsupportedError, (entry.flags & kZipEncrypted) == 0, "{} is encrypted", place);
  if ((entry.flags & ~(kZipHasDescriptor | kZipUtf8)) != 0) {
    reader.fail(entry.entry_offset, "flags", "{:#x} of {}", entry.flags, printable(entry.name));
  }
  if (methods == ZipMethods::kStored) {
    LIMPID_CHECK(UnsupportedError, entry.method == kZipStored,
                 "{} is compressed (method {}); torch.save stores records as they are: save the "
                 "checkpoint again with it",
                 place, entry.method);
  }
  LIMPID_CHECK(UnsupportedError, entry.method == kZipStored || entry.method == kZipDeflated,
               "{} is compressed by method {}; only stored and deflated records are read", place,
               entry.method);
}

// Reads one entry of the directory: numbers, then name, extra fields and a comment of the lengths
// that the numbers state.
Entry read_entry(ByteReader& reader, ZipMethods methods) {
  const uint64_t at = reader.offset();
  const auto header = reader.number<ZipEntryHeader>("directory");
  require(reader, at, "directory.signature", header.signature, kZipEntrySignature);
  require(reader, at + 34, "directory.disk", header.disk, 0);
  Entry entry;
  entry.name = reader.take(header.n_name, "directory.name");
  entry.header_offset = header.header_offset;
  entry.size = header.size;
  entry.crc32 = header.crc32;
  entry.is_deflated = header.method == kZipDeflated;
  entry.entry_offset = at;
  entry.flags = header.flags;
  entry.method = header.method;
  entry.compressed_size = header.compressed_size;
  if (entry.name.empty() || !is_clean_utf8(entry.name))
    reader.fail(at, "directory.name", "'{}' is not a valid name", printable(entry.name));
  check_method(reader, entry, methods);
  const uint64_t extra_offset = reader.offset();
  const std::string_view extra = reader.take(header.n_extra, "directory.extra");
  resolve_zip64(reader, at, find_zip64_extra(reader, extra_offset, extra),
                {&entry.size, &entry.compressed_size, &entry.header_offset});
  reader.take(header.n_comment, "directory.comment");
  if (entry.method == kZipStored && entry.compressed_size != entry.size) {
    reader.fail(at, "directory.size", "is {}, but {} bytes of {} are stored", entry.size,
                entry.compressed_size, printable(entry.name));
  }
  return entry;
}

// Checks the bytes between the data of a record and `end`: a data descriptor, 16 bytes or 24 with
// 64-bit sizes.
void check_descriptor(ByteReader& reader, const Entry& entry, uint64_t end) {
  const uint64_t start = reader.offset();
  const bool wide = end - start == kZip64DescriptorBytes;
  if (!wide && end - start != kZipDescriptorBytes) {
    reader.fail(start, "data descriptor", "of {}: {} bytes follow the data, expected {}",
                printable(entry.name), end - start, kZipDescriptorBytes);
  }
  const auto number = [&] { return reader.number<uint32_t>("data descriptor"); };
  const auto size = [&] { return wide ? reader.number<uint64_t>("data descriptor") : number(); };
  require(reader, start, "data descriptor.signature", number(), kZipDescriptorSignature);
  require(reader, start + 4, "data descriptor.crc32", number(), entry.crc32);
  require(reader, start + 8, "data descriptor.compressed_size", size(), entry.compressed_size);
  require(reader, start + (wide ? 16 : 12), "data descriptor.size", size(), entry.size);
}

// Checks the CRC and the sizes of a local header. They may be 0 when a descriptor follows the data.
void check_local_sizes(ByteReader& reader, const Entry& entry, const ZipLocalHeader& header,
                       const Zip64Numbers& extra) {
  const uint64_t at = entry.header_offset;
  uint64_t compressed = header.compressed_size;
  uint64_t size = header.size;
  const bool open = (entry.flags & kZipHasDescriptor) != 0;
  if (!open || header.crc32 != 0)
    require(reader, at + 14, "local header.crc32", header.crc32, entry.crc32);
  if (open && compressed == 0 && size == 0) {
    // torch.save may write the sizes and the offset of a large record here although nothing
    // requires them. They must be right.
    for (const uint64_t number : extra.value_or(std::vector<uint64_t>())) {
      if (number != entry.size && number != entry.compressed_size &&
          number != entry.header_offset) {
        reader.fail(at, "local header.zip64 field", "{} is neither the size nor the offset of {}",
                    number, printable(entry.name));
      }
    }
    return;
  }
  // Unlike the directory's, this field has both sizes even when only one of them asks for it.
  if (size == kZipIn64 || compressed == kZipIn64) size = compressed = kZipIn64;
  resolve_zip64(reader, at, extra, {&size, &compressed});
  require(reader, at + 22, "local header.size", size, entry.size);
  require(reader, at + 18, "local header.compressed_size", compressed, entry.compressed_size);
}

// Finds the data of `entry`. Its record must fill the bytes from its local header to `end`.
void read_record(ByteReader& reader, Entry& entry, uint64_t end) {
  const uint64_t at = entry.header_offset;
  reader.seek(at, "local header");
  const auto header = reader.number<ZipLocalHeader>("local header");
  require(reader, at, "local header.signature", header.signature, kZipLocalSignature);
  require(reader, at + 6, "local header.flags", header.flags, entry.flags);
  require(reader, at + 8, "local header.method", header.method, entry.method);
  const std::string_view name = reader.take(header.n_name, "local header.name");
  if (name != entry.name) {
    reader.fail(at + sizeof(ZipLocalHeader), "local header.name",
                "is '{}', but '{}' in the directory", printable(name), printable(entry.name));
  }
  const uint64_t extra_offset = reader.offset();
  const std::string_view extra = reader.take(header.n_extra, "local header.extra");
  check_local_sizes(reader, entry, header, find_zip64_extra(reader, extra_offset, extra));
  entry.data_offset = reader.offset();
  if (entry.data_offset > end || entry.compressed_size > end - entry.data_offset) {
    reader.fail(entry.entry_offset, "directory.size",
                "{} bytes of {} from byte {} reach beyond byte {}, where the next record begins",
                entry.compressed_size, printable(entry.name), entry.data_offset, end);
  }
  entry.bytes = std::as_bytes(std::span(reader.take(entry.compressed_size, "data")));
  if ((entry.flags & kZipHasDescriptor) != 0) {
    check_descriptor(reader, entry, end);
  } else if (reader.offset() != end) {
    reader.fail(reader.offset(), "data", "{} bytes after {} do not belong to a record",
                end - reader.offset(), printable(entry.name));
  }
}

}  // namespace

// Three passes. The first finds the directory from the end of the file. The second reads all
// entries of the directory, which must end exactly where the directory does. The third visits the
// records in the order of their offsets: each must begin where the one before it ends, the first at
// byte 0, and the last must end where the directory begins. Every byte of the file then belongs to
// one record or to the directory.
ZipArchive ZipArchive::parse(std::string_view path, std::span<const std::byte> bytes,
                             ZipMethods methods) {
  ByteReader reader(path, bytes);
  const Directory directory = read_end(reader);
  ByteReader entries_reader(path, bytes.first(directory.offset + directory.n_bytes));
  entries_reader.seek(directory.offset, "directory");
  std::vector<Entry> entries;
  for (uint64_t i = 0; i < directory.n_entries; ++i)
    entries.push_back(read_entry(entries_reader, methods));
  if (entries_reader.remaining() != 0) {
    reader.fail(entries_reader.offset(), "directory", "goes on for {} bytes after its {} entries",
                entries_reader.remaining(), directory.n_entries);
  }
  std::vector<size_t> order(entries.size());  // the entries by the offsets of their records
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::sort(order, {}, [&](size_t i) { return entries[i].header_offset; });
  const uint64_t first = order.empty() ? directory.offset : entries[order[0]].header_offset;
  if (first != 0) reader.fail(0, "local header", "{} bytes precede the archive", first);
  ZipArchive zip;
  zip.path_ = path;
  ByteReader records_reader(path, bytes.first(directory.offset));
  for (size_t k = 0; k < order.size(); ++k) {
    Entry& entry = entries[order[k]];
    const uint64_t end =
        k + 1 < order.size() ? entries[order[k + 1]].header_offset : directory.offset;
    if (entry.header_offset >= directory.offset || end > directory.offset) {
      reader.fail(entry.entry_offset, "directory.header_offset", "{} is beyond the records",
                  entry.header_offset);
    }
    read_record(records_reader, entry, end);
  }
  zip.records_.assign(entries.begin(), entries.end());
  for (size_t i = 0; i < zip.records_.size(); ++i) {
    if (!zip.by_name_.emplace(zip.records_[i].name, i).second) {
      reader.fail(entries[i].entry_offset, "directory.name", "'{}' occurs twice",
                  printable(zip.records_[i].name));
    }
  }
  return zip;
}

const ZipRecord* ZipArchive::find(std::string_view name) const {
  const auto it = by_name_.find(name);
  return it == by_name_.end() ? nullptr : &records_[it->second];
}

}  // namespace limpid
