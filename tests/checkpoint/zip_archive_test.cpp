// Archives that are not what they say: each is refused with the place at fault (the classes 15 and
// 16 of malformed files: docs/formats/torch.md, 1 to 5).
#include "checkpoint/zip_archive.h"

#include <gtest/gtest.h>

#include <functional>

#include "checkpoint/temp_file.h"
#include "checkpoint/torch_builder.h"
#include "checkpoint/torch_checkpoint.h"
#include "limpid/error.hpp"

namespace limpid {
namespace {

using torch_test::number;
using torch_test::small_archive;
using torch_test::ZipSketch;

Checkpoint parse(const std::string& bytes) {
  return parse_torch("m.pth", std::as_bytes(std::span(bytes)));
}

enum class Says { kMalformed, kUnsupported };

struct Spoilt {
  const char* name;
  std::function<void(ZipSketch&)>
      spoil;            // of small_archive(): data.pkl, byteorder, data/0, version
  const char* message;  // part of it
  Says says = Says::kMalformed;
};

std::string zip64_extra(std::initializer_list<uint64_t> values) {
  std::string content;
  for (const uint64_t value : values) content += number(value);
  return number(uint16_t{1}) + number(static_cast<uint16_t>(content.size())) + content;
}

const std::vector<Spoilt>& cases() {
  static const std::vector<Spoilt> all = {
      {"Comment", [](auto& z) { z.comment = "hello"; }, "end record: is not at the end"},
      {"AnotherEndInTheComment",
       [](auto& z) {
         z.comment = serialize(small_archive()).substr(0, 0) + std::string("PK\x05\x06") +
                     std::string(18, '\0');
       },
       "end record"},
      {"CommentThatIsNotThere", [](auto& z) { z.comment_length = 5; }, "comment_length"},
      {"PrependedData", [](auto& z) { z.records[0].before = "MZ program"; }, "precede the archive"},
      {"PrependedDataWithoutNewOffsets",
       [](auto& z) {
         z.records[0].before = "1234";
         z.records[0].header_offset = 0;
       },
       "local header.signature"},
      {"GapBetweenRecords", [](auto& z) { z.records[2].before = std::string(8, '\0'); },
       "data descriptor"},
      {"GapAfterASizedRecord",
       [](auto& z) {
         z.records[1].open = false;
         z.records[2].before = "12345678";
       },
       "do not belong to a record"},
      {"BytesAfterTheDirectory", [](auto& z) { z.after = "xx"; }, "directory_size"},
      {"FewerEntriesThanTheDirectoryHas",
       [](auto& z) {
         z.n_entries = 3;
         z.n_entries64 = 3;
       },
       "goes on for"},
      {"MoreEntriesThanTheDirectoryHas",
       [](auto& z) {
         z.n_entries = 5;
         z.n_entries64 = 5;
         z.after = std::string(46, 'x');
         z.directory_bytes = z.directory_bytes64.emplace(222 + 46);
       },
       "directory.signature"},
      {"EntriesMinusOne", [](auto& z) { z.n_entries64 = ~uint64_t{0}, z.n_entries = 0xffff; },
       "do not fit in"},
      {"EntriesOnOtherDisks", [](auto& z) { z.n_entries_here = 2; }, "entries_here"},
      {"Zip64LiesAboutEntries", [](auto& z) { z.n_entries64 = 3; }, "in the zip64 record"},
      {"Zip64LiesAboutTheOffset", [](auto& z) { z.directory_offset64 = 0; }, "in the zip64 record"},
      {"Zip64LiesAboutTheSize", [](auto& z) { z.directory_bytes64 = 46; }, "in the zip64 record"},
      {"Zip64OffsetOverflows",
       [](auto& z) {
         z.directory_offset64 = ~uint64_t{0};
         z.directory_offset = 0xffffffff;
       },
       "where the directory must end"},
      {"Zip64LocatorLies", [](auto& z) { z.end64_offset = 7; }, "zip64 locator.offset"},
      {"Zip64RecordOfAnotherSize", [](auto& z) { z.end64_bytes = 60; }, "zip64 end record.size"},
      {"Zip64Missing",
       [](auto& z) {
         z.zip64 = false;
         z.directory_offset = 0xffffffff;
       },
       "zip64 record that is missing"},
      {"DirectoryOffset",
       [](auto& z) {
         z.zip64 = false;
         z.directory_offset = 3;
       },
       "directory_size"},
      {"Compressed", [](auto& z) { z.records[2].entry.method = 8; }, "compressed",
       Says::kUnsupported},
      {"CompressedInTheLocalHeader", [](auto& z) { z.records[2].local.method = 8; },
       "local header.method"},
      {"Encrypted", [](auto& z) { z.records[2].entry.flags = 0x809; }, "encrypted",
       Says::kUnsupported},
      {"EncryptedInTheLocalHeader", [](auto& z) { z.records[2].local.flags = 0x809; },
       "local header.flags"},
      {"StrangeFlags", [](auto& z) { z.records[2].entry.flags = 0x2808; }, "flags"},
      {"NameTwice", [](auto& z) { z.records[3].name = "m/data/0"; }, "occurs twice"},
      {"NameEmpty", [](auto& z) { z.records[3].name = ""; }, "is not a valid name"},
      {"NameWithNul", [](auto& z) { z.records[3].name = std::string("m/a\0b", 5); },
       "is not a valid name"},
      {"NameNotUtf8", [](auto& z) { z.records[3].name = "m/\xff"; }, "is not a valid name"},
      {"AnotherNameInTheLocalHeader", [](auto& z) { z.records[2].local.name = "m/data/9"; },
       "local header.name"},
      {"OutsideTheRoot", [](auto& z) { z.records[3].name = "../version"; }, "outside the folder"},
      {"OutsideTheRootAbsolute", [](auto& z) { z.records[3].name = "/etc/passwd"; },
       "outside the folder"},
      {"LocalSignature", [](auto& z) { z.records[2].local.signature = 1; },
       "local header.signature"},
      {"EntrySignature", [](auto& z) { z.records[2].entry.signature = 1; }, "directory.signature"},
      {"LocalSizeContradicts", [](auto& z) { z.records[2].local.size = 25; }, "local header.size"},
      {"LocalCrcContradicts", [](auto& z) { z.records[2].local.crc32 = 1; }, "local header.crc32"},
      {"SizedLocalHeaderContradicts",
       [](auto& z) {
         z.records[2].open = false;
         z.records[2].local.size = 23;
         z.records[2].local.compressed = 23;
       },
       "local header.size"},
      {"SizedLocalHeaderOpen",
       [](auto& z) {
         z.records[2].open = false;
         z.records[2].local.size = 0;
         z.records[2].local.compressed = 0;
       },
       "local header.size"},
      {"SizesDiffer", [](auto& z) { z.records[2].entry.compressed = 12; }, "are stored"},
      {"Bomb",
       [](auto& z) {
         z.records[2].entry.size = 0xfffffff0;
         z.records[2].entry.compressed = 0xfffffff0;
       },
       "reach beyond"},
      {"BombOfZip64",
       [](auto& z) {
         z.records[2].entry.size = 0xffffffff;
         z.records[2].entry.compressed = 0xffffffff;
         z.records[2].entry.extra = zip64_extra({uint64_t{1} << 62, uint64_t{1} << 62});
       },
       "reach beyond"},
      {"OverlappingRecords",
       [](auto& z) {
         z.records[2].entry.size = 40;
         z.records[2].entry.compressed = 40;
       },
       "data descriptor"},
      {"SharedRecord", [](auto& z) { z.records[3].header_offset = 0; }, "reach beyond"},
      {"HeaderBehindTheRecords", [](auto& z) { z.records[3].header_offset = 0xfffffff0; },
       "beyond the records"},
      {"DescriptorMissing", [](auto& z) { z.records[2].descriptor = ""; }, "data descriptor"},
      {"DescriptorSignature", [](auto& z) { z.records[2].descriptor = std::string(16, '\0'); },
       "data descriptor.signature"},
      {"DescriptorCrc",
       [](auto& z) {
         z.records[2].descriptor = torch_test::descriptor_of(torch_test::floats(6));
         (*z.records[2].descriptor)[4] ^= 1;
       },
       "data descriptor.crc32"},
      {"DescriptorSize",
       [](auto& z) {
         z.records[2].descriptor = torch_test::descriptor_of(torch_test::floats(6));
         (*z.records[2].descriptor)[12] ^= 1;
       },
       "data descriptor.size"},
      {"Zip64FieldMissing", [](auto& z) { z.records[2].entry.size = 0xffffffff; },
       "zip64 field: is missing"},
      {"Zip64FieldNotAskedFor", [](auto& z) { z.records[2].entry.extra = zip64_extra({24}); },
       "zip64 field: has 8 bytes, expected 0"},
      {"Zip64FieldTwice",
       [](auto& z) { z.records[2].entry.extra = zip64_extra({24}) + zip64_extra({24}); },
       "second zip64 field"},
      {"Zip64FieldTooShort",
       [](auto& z) {
         z.records[2].entry.size = 0xffffffff;
         z.records[2].entry.compressed = 0xffffffff;
         z.records[2].entry.extra = zip64_extra({24});
       },
       "expected 16"},
      {"Zip64FieldOfTheLocalHeaderLies",
       [](auto& z) {
         z.records[2].local.extra = zip64_extra({25, 25});
       },
       "neither the size nor the offset"},
      {"ExtraFieldLeavesItsPlace",
       [](auto& z) { z.records[2].entry.extra = number(uint16_t{7}) + number(uint16_t{100}); },
       "reaches beyond the extra fields"},
      {"ExtraFieldCut", [](auto& z) { z.records[2].local.extra = "FB"; }, "is truncated"},
      {"CrcOfThePickle",
       [](auto& z) {
         z.records[0].entry.crc32 = 0x12345678;
         z.records[0].descriptor = number(kZipDescriptorSignature) + number(0x12345678U) +
                                   number(static_cast<uint32_t>(z.records[0].content.size())) +
                                   number(static_cast<uint32_t>(z.records[0].content.size()));
       },
       "the archive says 12345678"},
      {"NoChecksums",
       [](auto& z) {
         z.records[0].entry.crc32 = 0;
         z.records[0].descriptor = number(kZipDescriptorSignature) + number(0U) +
                                   number(static_cast<uint32_t>(z.records[0].content.size())) +
                                   number(static_cast<uint32_t>(z.records[0].content.size()));
       },
       "has no checksum"},
      {"NoPickle", [](auto& z) { z.records.erase(z.records.begin()); }, "no data.pkl",
       Says::kUnsupported},
      {"Empty", [](auto& z) { z.records.clear(); }, "no data.pkl", Says::kUnsupported},
      {"TorchScript", [](auto& z) { z.add("code/__torch__.py", "x"); }, "TorchScript",
       Says::kUnsupported},
      {"BigEndian", [](auto& z) { z.records[1].content = "big"; }, "byteorder is 'big'",
       Says::kUnsupported},
  };
  return all;
}

class ZipArchiveSpoilt : public testing::TestWithParam<size_t> {};

TEST_P(ZipArchiveSpoilt, IsRefused) {
  const Spoilt& spoilt = cases()[GetParam()];
  ZipSketch zip = small_archive();
  spoilt.spoil(zip);
  try {
    parse(serialize(zip));
    FAIL() << "was accepted";
  } catch (const FormatError& error) {
    EXPECT_EQ(spoilt.says, Says::kMalformed);
    EXPECT_EQ(error.path(), "m.pth");
    EXPECT_NE(error.offset(), FormatError::kNoOffset);
    EXPECT_NE(std::string(error.what()).find(spoilt.message), std::string::npos) << error.what();
  } catch (const UnsupportedError& error) {
    EXPECT_EQ(spoilt.says, Says::kUnsupported);
    EXPECT_NE(std::string(error.what()).find(spoilt.message), std::string::npos) << error.what();
  }
}

INSTANTIATE_TEST_SUITE_P(All, ZipArchiveSpoilt, testing::Range<size_t>(0, cases().size()),
                         [](const auto& info) { return cases()[info.param].name; });

TEST(ZipArchive, EveryCutIsAFormatError) {
  const std::string bytes = serialize(small_archive());
  ASSERT_NO_THROW(parse(bytes));
  for (size_t n = 0; n < bytes.size(); ++n) {
    // A copy of exactly this size, so that a sanitizer sees a read beyond it.
    const std::vector<std::byte> cut(reinterpret_cast<const std::byte*>(bytes.data()),
                                     reinterpret_cast<const std::byte*>(bytes.data()) + n);
    EXPECT_THROW(parse_torch("m.pth", cut), FormatError) << n;
  }
  EXPECT_THROW(parse(bytes + "x"), FormatError);
}

// The archive has no slack: whatever single bit is turned, it is another archive or none.
TEST(ZipArchive, NoBitOfTheFrameIsIgnored) {
  const std::string bytes = serialize(small_archive());
  size_t n_accepted = 0;
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    std::string flipped = bytes;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    try {
      const Checkpoint checkpoint = parse(flipped);
      ASSERT_EQ(checkpoint.find("w")->shape, (Shape{2, 3}));
      ++n_accepted;
    } catch (const FormatError&) {
    } catch (const UnsupportedError&) {
    }
  }
  // Versions, times, attributes, and the content of records whose checksums are not asked for.
  const size_t n_free = 4 * 8 * (2 + 4 + 4 + 4 + 6) + 4 * 8 + 8 * (24 + 2);
  EXPECT_LE(n_accepted, n_free);
}

TEST(ZipArchive, AcceptsWhatOtherWritersDo) {
  ZipSketch sized = small_archive();  // Python's zipfile: sizes before the data, no zip64 record
  sized.zip64 = false;
  for (auto& record : sized.records) record.open = false;
  EXPECT_EQ(parse(serialize(sized)).tensors.size(), 1u);

  ZipSketch forced = sized;  // and with force_zip64
  forced.records[2].local.size = 0xffffffff;
  forced.records[2].local.compressed = 0xffffffff;
  forced.records[2].local.extra = zip64_extra({24, 24});
  EXPECT_EQ(parse(serialize(forced)).tensors.size(), 1u);

  ZipSketch large = small_archive();  // torch.save beyond 4 GiB: the offset in the local header too
  large.records[0].local.extra = zip64_extra({0});
  EXPECT_EQ(parse(serialize(large)).tensors.size(), 1u);
  large.records[2].descriptor = number(kZipDescriptorSignature) +
                                number(torch_test::crc_of(torch_test::floats(6))) +
                                number(uint64_t{24}) + number(uint64_t{24});
  EXPECT_EQ(parse(serialize(large)).tensors.size(), 1u);
}

// A storage of more than 4 GiB and a record behind it, as torch.save lays them out; the file is a
// hole.
TEST(ZipArchive, ReadsBeyondFourGibibytes) {
  torch_test::TensorSketch tensor;
  tensor.n_stored = (1 << 30) + 6;
  tensor.offset = torch_test::integer(1 << 30);
  const std::string pickle = torch_test::state_dict(serialize(tensor));
  const uint64_t n_bytes = uint64_t{4} * static_cast<uint64_t>(tensor.n_stored);
  torch_test::RecordSketch first{"m/data.pkl", pickle}, large{"m/data/0", ""},
      last{"m/version", "3\n"};
  const auto wide_descriptor = [](uint32_t crc, uint64_t n) {
    return number(kZipDescriptorSignature) + number(crc) + number(n) + number(n);
  };
  std::string begin = local_header(first) + pickle + torch_test::descriptor_of(pickle);
  const uint64_t large_offset = begin.size();
  large.local.extra = zip64_extra({n_bytes, n_bytes});
  begin += local_header(large);
  const uint64_t last_offset = begin.size() + n_bytes + kZip64DescriptorBytes;
  last.local.extra = zip64_extra({last_offset});
  large.entry.size = large.entry.compressed = last.header_offset = 0xffffffff;
  large.entry.extra = zip64_extra({n_bytes, n_bytes});
  large.entry.crc32 = 7;
  last.entry.extra = zip64_extra({last_offset});
  std::string end = wide_descriptor(7, n_bytes) + local_header(last) + "3\n" +
                    wide_descriptor(torch_test::crc_of("3\n"), 2);
  const uint64_t directory = begin.size() + n_bytes + end.size();
  const std::string entries =
      directory_entry(first, 0) + directory_entry(large, large_offset) + directory_entry(last, 0);
  end += entries + number(kZip64EndSignature) + number(sizeof(Zip64EndRecord) - 12) +
         std::string(12, '\0') + number(uint64_t{3}) + number(uint64_t{3}) +
         number(uint64_t{entries.size()}) + number(directory) + number(kZip64LocatorSignature) +
         number(0U) + number(directory + entries.size()) + number(1U) + number(kZipEndSignature) +
         number(0U) + number(uint16_t{3}) + number(uint16_t{3}) +
         number(static_cast<uint32_t>(entries.size())) + number(0xffffffffU) + number(uint16_t{0});

  TempFolder folder;
  const std::string path = folder.write("m.pth", begin);
  std::filesystem::resize_file(path, begin.size() + n_bytes);
  std::ofstream(path, std::ios::binary | std::ios::app) << end;
  const Checkpoint checkpoint = open_torch(path);
  Tensor storage;
  const TensorView tensor_view = checkpoint.read("w", storage);
  EXPECT_EQ(tensor_view.shape, (Shape{2, 3}));
  EXPECT_EQ(tensor_view.f32()[5], 0.0f);
}

TEST(ZipArchive, VerifyFindsADamagedTensor) {
  std::string bytes = serialize(small_archive());
  const size_t at = bytes.find(torch_test::floats(6)) + 5;
  bytes[at] = static_cast<char>(bytes[at] ^ 1);
  EXPECT_NO_THROW(parse(bytes));
  const ZipArchive zip = ZipArchive::parse("m.pth", std::as_bytes(std::span(bytes)));
  EXPECT_NO_THROW(zip.check_content(*zip.find("m/version")));
  EXPECT_THROW(zip.check_content(*zip.find("m/data/0")), FormatError);
}

}  // namespace
}  // namespace limpid
