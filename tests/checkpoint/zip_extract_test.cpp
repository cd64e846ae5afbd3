// Records of an archive, taken out: stored, deflated, damaged.
#include <gtest/gtest.h>
#include <zlib.h>

#include <optional>
#include <string>

#include "checkpoint/zip_archive.h"
#include "checkpoint/zip_layout.h"
#include "limpid/error.hpp"

namespace limpid {
namespace {

void put(std::string& out, uint64_t value, int n_bytes) {
  for (int i = 0; i < n_bytes; ++i) out += static_cast<char>(value >> (8 * i));
}

std::string deflate_raw(const std::string& text) {
  z_stream stream{};
  deflateInit2(&stream, 9, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  std::string out(text.size() + 100, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

// An archive of one record "dir/name" after a stored "other". `crc_error` spoils the checksums;
// `size` is what the headers say of the content's size; `after` follows what is deflated.
std::string zip_of(const std::string& text, int method, uint32_t crc_error = 0,
                   std::optional<size_t> size = {}, const std::string& after = "") {
  std::string zip;
  std::string directory;
  const auto add = [&](const std::string& name, const std::string& content, int how) {
    const std::string data = how == 8 ? deflate_raw(content) + after : content;
    const size_t offset = zip.size();
    const auto fields = [&](std::string& out) {
      put(out, 20, 2);  // version needed
      put(out, 0, 2);   // flags
      put(out, static_cast<uint64_t>(how), 2);
      put(out, 0, 4);  // time and date
      put(out, zip_crc32(std::as_bytes(std::span(content))) ^ crc_error, 4);
      put(out, data.size(), 4);
      put(out, name == "other" ? content.size() : size.value_or(content.size()), 4);
      put(out, name.size(), 2);
      put(out, 0, 2);  // extra
    };
    put(zip, 0x04034b50, 4);
    fields(zip);
    zip += name + data;
    put(directory, 0x02014b50, 4);
    put(directory, 20, 2);  // version made by
    fields(directory);
    put(directory, 0, 2);  // comment
    put(directory, 0, 8);  // disk, attributes
    put(directory, offset, 4);
    directory += name;
  };
  add("other", "something else", 0);
  add("dir/name", text, method);
  const size_t start = zip.size();
  zip += directory;
  put(zip, 0x06054b50, 4);
  put(zip, 0, 4);
  put(zip, 2, 2);
  put(zip, 2, 2);
  put(zip, directory.size(), 4);
  put(zip, start, 4);
  put(zip, 0, 2);
  return zip;
}

std::string read_record(const std::string& zip) {
  const ZipArchive archive =
      ZipArchive::parse("a.zip", std::as_bytes(std::span(zip)), ZipMethods::kStoredOrDeflated);
  std::string out;
  archive.extract(*archive.find("dir/name"), [&](std::span<const std::byte> bytes) {
    out.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  });
  return out;
}

TEST(ZipExtract, StoredAndDeflated) {
  const std::string text(3'000'000, 'x');  // more than one piece
  EXPECT_EQ(read_record(zip_of(text, kZipStored)), text);
  EXPECT_EQ(read_record(zip_of(text, kZipDeflated)), text);
}

TEST(ZipExtract, AnotherSizeThanTheDirectoryStatesIsRefused) {
  const std::string text(50'000, 'x');
  for (const size_t size : {0, 1, 49'999, 50'001})
    EXPECT_THROW(read_record(zip_of(text, kZipDeflated, 0, size)), FormatError) << size;
}

TEST(ZipExtract, BytesAfterTheDeflatedDataAreRefused) {
  for (const size_t size : {9, 1 << 20, 3'000'000}) {
    const std::string text(size, 'x');
    EXPECT_EQ(read_record(zip_of(text, kZipDeflated)), text);
    EXPECT_THROW(read_record(zip_of(text, kZipDeflated, 0, {}, "y")), FormatError) << size;
  }
}

TEST(ZipExtract, AnotherChecksumIsRefused) {
  EXPECT_THROW(read_record(zip_of("some text", kZipStored, 1)), FormatError);
  EXPECT_THROW(read_record(zip_of("some text", kZipDeflated, 1)), FormatError);
}

TEST(ZipExtract, EveryTruncationIsAnError) {
  const std::string zip = zip_of("some text, some text, some text", kZipDeflated);
  for (size_t n = 0; n < zip.size(); ++n) EXPECT_THROW(read_record(zip.substr(0, n)), Error) << n;
}

TEST(ZipExtract, NoBitOfDeflatedDataIsIgnored) {
  const std::string text = "some text, some text, other words";
  const std::string zip = zip_of(text, kZipDeflated);
  const std::string deflated = deflate_raw(text);
  const size_t start = zip.find(deflated);
  for (size_t bit = 0; bit < 8 * deflated.size(); ++bit) {
    std::string spoilt = zip;
    spoilt[start + bit / 8] = static_cast<char>(spoilt[start + bit / 8] ^ (1 << (bit % 8)));
    try {
      EXPECT_EQ(read_record(spoilt), text) << bit;  // padding after the last symbol
    } catch (const FormatError&) {
    }
  }
}

TEST(ZipExtract, UnknownMethodIsRefused) {
  EXPECT_THROW(read_record(zip_of("text", 12)), UnsupportedError);
}

}  // namespace
}  // namespace limpid
