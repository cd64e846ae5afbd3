// Malformed GGUF files: each is refused with the offset and the field at fault. The numbers of the
// classes follow docs/formats/gguf.md.
#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "checkpoint/gguf.h"
#include "checkpoint/gguf_builder.h"
#include "expect_error.h"
#include "limpid/error.hpp"

namespace limpid {
namespace {

using gguf_test::array_value;
using gguf_test::GgufSketch;
using gguf_test::Marks;
using gguf_test::number;
using gguf_test::small_sketch;

constexpr uint64_t kHuge = ~uint64_t{0};

struct Malformed {
  const char* name;
  std::function<void(GgufSketch&)>
      spoil;            // of small_sketch(): keys 0-16, tensors plain, half, quantised
  const char* mark;     // where the error must point
  const char* field;    // part of its field
  const char* problem;  // part of its message
};

constexpr size_t kLast = 16;  // the last key of small_sketch()

const std::vector<Malformed>& cases() {
  static const std::vector<Malformed> all = {
      {"Magic", [](auto& s) { s.magic = "GGUX"; }, nullptr, "header.magic", "GGUX"},
      {"VersionZero", [](auto& s) { s.version = 0; }, nullptr, "header.version", "0"},
      {"TensorCountMinusOne", [](auto& s) { s.n_tensors = kHuge; }, "n_tensors",
       "header.tensor_count", "18446744073709551615"},
      {"TensorCountAboveFile", [](auto& s) { s.n_tensors = 100; }, "n_tensors",
       "header.tensor_count", "100 entries"},
      {"MetadataCountMinusOne", [](auto& s) { s.n_metadata = kHuge; }, "n_metadata",
       "header.metadata_count", "entries"},
      {"MetadataCountAboveFile", [](auto& s) { s.n_metadata = 500; }, "n_metadata",
       "header.metadata_count", "500 entries"},
      {"KeyEmpty", [](auto& s) { s.metadata[2].key = ""; }, "kv2.key", "metadata[2].key",
       "has 0 bytes"},
      {"KeyTooLong", [](auto& s) { s.metadata[2].key_length = 65536; }, "kv2.key",
       "metadata[2].key", "65536"},
      {"KeyLengthMinusOne", [](auto& s) { s.metadata[2].key_length = kHuge; }, "kv2.key",
       "metadata[2].key", "must have 1 to"},
      {"KeyTwice", [](auto& s) { s.metadata[3].key = "a.u8"; }, "kv3.key", "metadata[3].key",
       "occurs twice"},
      {"KeyWithNul", [](auto& s) { s.metadata[2].key = std::string("a\0b", 3); }, "kv2.key",
       "metadata[2].key", "without NUL"},
      {"KeyNotUtf8", [](auto& s) { s.metadata[2].key = "a\xff"; }, "kv2.key", "metadata[2].key",
       "UTF-8"},
      {"MetadataType", [](auto& s) { s.metadata[2].type = 13; }, "kv2.type", "a.u8",
       "unknown metadata type 13"},
      {"StringLengthMinusOne", [](auto& s) { s.metadata[0].value = number(kHuge); }, "kv0.value",
       "general.architecture", "at most"},
      {"StringAboveFile", [](auto& s) { s.metadata[0].value = number<uint64_t>(100000); },
       "kv0.value", "general.architecture", "100000 bytes"},
      {"BoolTwo", [](auto& s) { s.metadata[8].value = "\x02"; }, "kv8.value", "a.bool", "0 or 1"},
      {"ArrayType", [](auto& s) { s.metadata[kLast].value = array_value(77, 1, "x"); },
       "kv16.value", "a.nested", "unknown metadata type 77"},
      {"ArrayOverCap", [](auto& s) { s.metadata[kLast].value = array_value(0, kHuge, "x"); },
       nullptr, "a.nested", "at most"},
      {"ArrayAboveFile", [](auto& s) { s.metadata[kLast].value = array_value(12, 50000, "x"); },
       nullptr, "a.nested", "50000 elements of type f64"},
      {"ArrayTooDeep",
       [](auto& s) {
         std::string value = array_value(0, 0, "");
         for (int i = 0; i < 4; ++i) value = array_value(9, 1, value);
         s.metadata[kLast].value = value;
       },
       nullptr, "a.nested", "deeper"},
      {"AlignmentWrongType",
       [](auto& s) {
         s.metadata[1].type = 5;
         s.metadata[1].value = number<int32_t>(32);
       },
       "kv1.type", "general.alignment", "is i32, must be u32"},
      {"AlignmentZero", [](auto& s) { s.metadata[1].value = number<uint32_t>(0); }, "kv1.type",
       "general.alignment", "0 is not a power of two"},
      {"AlignmentOdd", [](auto& s) { s.metadata[1].value = number<uint32_t>(48); }, "kv1.type",
       "general.alignment", "48 is not a power of two"},
      {"AlignmentHuge", [](auto& s) { s.metadata[1].value = number<uint32_t>(1u << 31); },
       "kv1.type", "general.alignment", "2147483648"},
      {"DimensionsTooMany", [](auto& s) { s.tensors[0].n_dims = 5; }, "t0.n_dims",
       "tensor 'plain'.n_dims", "at most 4"},
      {"DimensionZero", [](auto& s) { s.tensors[0].dims[0] = 0; }, "t0.dims0",
       "tensor 'plain'.dims[0]", "positive"},
      {"DimensionNegative", [](auto& s) { s.tensors[0].dims[1] = static_cast<uint64_t>(-2); },
       "t0.dims1", "tensor 'plain'.dims[1]", "-2"},
      {"ProductWraps",
       [](auto& s) {
         s.tensors[0].dims = {uint64_t{1} << 32, uint64_t{1} << 32};
       },
       "t0.dims1", "tensor 'plain'.dims[1]", "too many elements"},
      {"ProductAboveSigned",
       [](auto& s) {
         s.tensors[0].dims = {static_cast<uint64_t>(std::numeric_limits<int64_t>::max()), 2};
       },
       "t0.dims1", "tensor 'plain'.dims[1]", "too many elements"},
      {"RowNoMultipleOfBlock",
       [](auto& s) {
         s.tensors[2].dims = {33, 2};
       },
       "t2.name", "tensor 'quantised'.dims[0]", "not a multiple of the 32"},
      {"TensorTypeUnknown", [](auto& s) { s.tensors[0].type = 1000; }, "t0.type",
       "tensor 'plain'.type", "unknown tensor type 1000"},
      {"BytesOverflow", [](auto& s) { s.tensors[0].dims = {uint64_t{1} << 62}; }, "t0.name",
       "tensor 'plain'", "more than 2^64 bytes"},
      {"PaddingOverflow",  // 2^64 - 4 bytes of f32: the size fits, its padding does not
       [](auto& s) { s.tensors[0].dims = {(uint64_t{1} << 62) - 1}; }, "t0.offset",
       "tensor 'plain'.offset", "beyond 2^64"},
      {"RunningSumOverflow",  // 2^63 bytes each
       [](auto& s) {
         s.tensors[0].dims = {uint64_t{1} << 61};
         s.tensors[1].dims = {uint64_t{1} << 62};
         s.tensors[1].offset = uint64_t{1} << 63;
       },
       "t1.offset", "tensor 'half'.offset", "beyond 2^64"},
      {"OffsetMisaligned", [](auto& s) { s.tensors[1].offset = 33; }, "t1.offset",
       "tensor 'half'.offset", "not aligned"},
      {"OffsetOverlaps", [](auto& s) { s.tensors[1].offset = 0; }, "t1.offset",
       "tensor 'half'.offset", "overlaps"},
      {"OffsetLeavesGap", [](auto& s) { s.tensors[1].offset = 64; }, "t1.offset",
       "tensor 'half'.offset", "gap"},
      {"DataBeyondFile",
       [](auto& s) {
         s.tensors[2].dims = {32, 3};
       },
       "t2.offset", "tensor 'quantised'.data", "truncated"},
      {"NameTwice", [](auto& s) { s.tensors[1].name = "plain"; }, "t1.name", "tensor[1].name",
       "occurs twice"},
      {"NameTooLong", [](auto& s) { s.tensors[0].name = std::string(65, 'n'); }, "t0.name",
       "tensor[0].name", "has 65 bytes"},
      {"NameEmpty", [](auto& s) { s.tensors[0].name = ""; }, "t0.name", "tensor[0].name",
       "has 0 bytes"},
      {"NameLengthMinusOne", [](auto& s) { s.tensors[0].name_length = kHuge; }, "t0.name",
       "tensor[0].name", "must have 1 to 64"},
      {"NameWithNul", [](auto& s) { s.tensors[0].name = std::string("p\0q", 3); }, "t0.name",
       "tensor[0].name", "NUL"},
      {"NameNotUtf8", [](auto& s) { s.tensors[0].name = "p\xc0\xaf"; }, "t0.name", "tensor[0].name",
       "UTF-8"},
  };
  return all;
}

class GgufMalformed : public testing::TestWithParam<Malformed> {};

TEST_P(GgufMalformed, IsRefusedWithOffsetAndField) {
  const Malformed& param = GetParam();
  GgufSketch sketch = small_sketch();
  param.spoil(sketch);
  Marks marks;
  const std::string bytes = serialize(sketch, &marks);
  try {
    parse_gguf("bad.gguf", std::as_bytes(std::span(bytes.data(), bytes.size())));
    FAIL() << "accepted";
  } catch (const FormatError& error) {
    const std::string what = error.what();
    EXPECT_EQ(error.path(), "bad.gguf");
    EXPECT_NE(error.offset(), FormatError::kNoOffset) << what;
    if (param.mark != nullptr) {
      EXPECT_EQ(error.offset(), marks.at(param.mark)) << what;
    }
    EXPECT_NE(error.field().find(param.field), std::string::npos) << what;
    EXPECT_NE(what.find(param.problem), std::string::npos) << what;
    EXPECT_EQ(what.find('\n'), std::string::npos) << what;
  }
}

INSTANTIATE_TEST_SUITE_P(All, GgufMalformed, testing::ValuesIn(cases()),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(GgufVersions, OldNewAndBigEndianAreRefusedByName) {
  for (const auto& [version, text] :
       {std::pair{1u, "version 1"}, {4u, "version 4"}, {0x03000000u, "big-endian"}}) {
    GgufSketch sketch = small_sketch();
    sketch.version = version;
    const std::string bytes = serialize(sketch);
    expect_error<UnsupportedError>([&] { parse_gguf("v.gguf", std::as_bytes(std::span(bytes))); },
                                   {text, "at byte 4"});
  }
}

TEST(GgufErrors, HostileNamesCannotWriteToTheTerminal) {
  GgufSketch sketch;
  sketch.add_u32("\x1b[2Jboo\n", 1).type = 99;
  const std::string bytes = serialize(sketch);
  expect_error<FormatError>([&] { parse_gguf("x.gguf", std::as_bytes(std::span(bytes))); },
                            {"\\x1b[2Jboo\\x0a: "});
}

// Counts that a file of this size could hold must not cost more than a small multiple of it, nor
// quadratic time.
TEST(GgufErrors, ManyKeysAndTensorsAreReadInLinearTime) {
  GgufSketch sketch;
  sketch.add_u32("general.alignment", 8);
  sketch.alignment = 8;
  for (uint32_t i = 0; i < 100000; ++i) sketch.add_u32("key." + std::to_string(i), i);
  for (uint32_t i = 0; i < 50000; ++i)
    sketch.add_tensor("t." + std::to_string(i), {1}, 0, number(1.0f));
  const std::string bytes = serialize(sketch);
  const GgufFile file =
      parse_gguf("many.gguf", std::as_bytes(std::span(bytes.data(), bytes.size())));
  EXPECT_EQ(file.tensors.size(), 50000u);
  EXPECT_EQ(file.metadata.integer("key.99999"), 99999);
}

}  // namespace
}  // namespace limpid
