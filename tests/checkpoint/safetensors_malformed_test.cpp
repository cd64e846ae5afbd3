// Malformed safetensors files and JSON: each is refused with the field at fault. Classes 13 and 14
// of docs/formats/safetensors.md.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "checkpoint/safetensors.h"
#include "checkpoint/safetensors_builder.h"
#include "expect_error.h"
#include "limpid/error.hpp"

namespace limpid {
namespace {

using safetensors_test::file_of;

struct Malformed {
  const char* name;
  std::string bytes;
  const char* field;    // part of the error's field
  const char* problem;  // part of its message
};

// One tensor "t" with this inside of its braces.
std::string tensor_of(const std::string& inside, size_t n_data) {
  return file_of(R"({"t":{)" + inside + "}}", n_data);
}

std::string with_offsets(const std::string& offsets, size_t n_data = 8) {
  return tensor_of(R"("dtype":"F32","shape":[2],"data_offsets":)" + offsets, n_data);
}

std::string with_shape(const std::string& shape, size_t n_data = 8) {
  return tensor_of(fmt::format(R"("dtype":"F32","shape":{},"data_offsets":[0,{}])", shape, n_data),
                   n_data);
}

std::string nested(size_t depth) {
  return file_of(R"({"t":)" + std::string(depth, '[') + std::string(depth, ']') + "}", 0);
}

const std::vector<Malformed>& cases() {
  static const std::vector<Malformed> all = {
      {"LengthBeyondFile", file_of("{}", 0, 3), "header", "is the download complete"},
      {"LengthMinusOne", file_of("{}", 0, ~uint64_t{0} - 1), "header.length", "at most 100000000"},
      {"LengthAbove100MB", file_of("{}", 0, 100'000'001), "header.length", "at most 100000000"},
      {"LengthZero", file_of("", 0), "header", "does not begin with '{'"},
      {"BeginsWithBracket", file_of("[]", 0), "header", "does not begin with '{'"},
      {"BeginsWithSpace", file_of(" {}", 0), "header", "does not begin with '{'"},
      {"NotJson", file_of("{nonsense}", 0), "header", "is not JSON"},
      {"TwoDocuments", file_of("{}{}", 0), "header", "is not JSON"},
      {"NotUtf8", file_of("{\"\xff\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}}", 0),
       "header", "is not JSON"},
      {"LoneSurrogate", file_of(R"({"\ud800":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})", 0),
       "", ""},
      {"LowSurrogate", file_of(R"({"\udc00":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})", 0),
       "", ""},
      {"NulInName", file_of(R"({"a\u0000b":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})", 0),
       "tensor", "without NUL"},
      {"EmptyName", file_of(R"({"":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})", 0), "tensor",
       "not empty"},
      {"TrailingBytes", with_offsets("[0,8]", 9), "data", "1 bytes follow"},
      {"TrailingBytesWithoutTensors", file_of("{}", 1), "data", "1 bytes follow"},
      {"HoleBefore", with_offsets("[4,12]", 12), "tensor 't'.data_offsets", "hole"},
      {"HoleBetween",
       file_of(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
               R"("b":{"dtype":"U8","shape":[1],"data_offsets":[2,3]}})",
               3),
       "tensor 'b'.data_offsets", "hole"},
      {"Overlap",
       file_of(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
               R"("b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})",
               3),
       "tensor 'b'.data_offsets", "overlapping"},
      {"SameData",
       file_of(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
               R"("b":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})",
               2),
       "tensor", "overlapping"},
      {"BeyondFile", with_offsets("[0,8]", 7), "tensor 't'.data_offsets", "download complete"},
      {"EndBeforeBegin", with_offsets("[8,0]"), "tensor 't'.data_offsets", "ends before"},
      {"BytesDoNotFitShape", with_offsets("[0,4]", 4), "tensor 't'.data_offsets",
       "hold 4 bytes, but dtype and shape need 8"},
      {"OneOffset", with_offsets("[0]"), "tensor 't'.data_offsets", "pair"},
      {"ThreeOffsets", with_offsets("[0,8,8]"), "tensor 't'.data_offsets", "pair"},
      {"OffsetNegative", with_offsets("[-8,0]"), "header", "negative"},
      {"OffsetMinusZero", with_offsets("[-0,8]"), "header", "negative"},
      {"OffsetFloat", with_offsets("[0,8.0]"), "tensor 't'.data_offsets", "whole number"},
      {"OffsetExponent", with_offsets("[0,8e0]"), "tensor 't'.data_offsets", "whole number"},
      {"OffsetString", with_offsets(R"([0,"8"])"), "tensor 't'.data_offsets", "whole number"},
      {"OffsetAboveSigned", with_offsets("[0,18446744073709551615]"), "tensor 't'.data_offsets",
       "whole number"},
      {"OffsetHuge", with_offsets("[0,1" + std::string(400, '0') + "]"), "header", "is not JSON"},
      {"ShapeNegative", with_shape("[-2]"), "header", "negative"},
      {"ShapeFloat", with_shape("[2.0]"), "tensor 't'.shape", "whole number"},
      {"ShapeExponent", with_shape("[2e0]"), "tensor 't'.shape", "whole number"},
      {"ShapeNoArray", with_shape("2"), "tensor 't'.shape", "not an array"},
      {"ShapeWraps", with_shape("[4294967296,4294967296]", 0), "tensor 't'.shape[1]", "too many"},
      {"BitsWrap", with_shape("[9223372036854775807]", 0), "tensor 't'.shape", "2^64 bits"},
      {"NoDType", tensor_of(R"("shape":[2],"data_offsets":[0,8])", 8), "dtype", "is missing"},
      {"NoShape", tensor_of(R"("dtype":"F32","data_offsets":[0,8])", 8), "shape", "is missing"},
      {"NoOffsets", tensor_of(R"("dtype":"F32","shape":[2])", 8), "data_offsets", "is missing"},
      {"DTypeUnknown", tensor_of(R"("dtype":"F31","shape":[2],"data_offsets":[0,8])", 8), "dtype",
       "unknown dtype 'F31'"},
      {"DTypeLowerCase", tensor_of(R"("dtype":"f32","shape":[2],"data_offsets":[0,8])", 8), "dtype",
       "unknown dtype 'f32'"},
      {"SubByteMisaligned", tensor_of(R"("dtype":"F4","shape":[3],"data_offsets":[0,1])", 1),
       "shape", "within a byte"},
      {"TensorNoObject", file_of(R"({"t":7})", 0), "tensor 't'", "not an object"},
      {"MetadataNoObject", file_of(R"({"__metadata__":"pt"})", 0), "__metadata__", "not an object"},
      {"MetadataNumber", file_of(R"({"__metadata__":{"format":1}})", 0), "__metadata__.format",
       "not a string"},
      {"MetadataNested", file_of(R"({"__metadata__":{"a":{"b":"c"}}})", 0), "__metadata__.a",
       "not a string"},
      {"MetadataNull", file_of(R"({"__metadata__":{"a":null}})", 0), "__metadata__.a",
       "not a string"},
      {"NameTwice",
       file_of(R"({"t":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},)"
               R"("t":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})",
               0),
       "t", "occurs twice"},
      {"FieldTwice",
       tensor_of(R"("dtype":"F32","dtype":"F32","shape":[2],"data_offsets":[0,8])", 8), "t.dtype",
       "occurs twice"},
      {"MetadataTwice", file_of(R"({"__metadata__":{},"__metadata__":{}})", 0), "__metadata__",
       "occurs twice"},
      {"MetadataKeyTwice", file_of(R"({"__metadata__":{"a":"1","a":"2"}})", 0), "__metadata__.a",
       "occurs twice"},
      {"Deep", nested(65), "header", "deeper than 64"},
      {"VeryDeep", nested(100'000), "header", "deeper than 64"},
  };
  return all;
}

class SafetensorsMalformed : public testing::TestWithParam<Malformed> {};

TEST_P(SafetensorsMalformed, IsRefusedWithOffsetAndField) {
  const Malformed& param = GetParam();
  try {
    parse_safetensors("bad.safetensors", std::as_bytes(std::span(param.bytes)));
    FAIL() << "accepted";
  } catch (const FormatError& error) {
    const std::string what = error.what();
    EXPECT_EQ(error.path(), "bad.safetensors");
    EXPECT_NE(error.offset(), FormatError::kNoOffset) << what;
    EXPECT_NE(error.field().find(param.field), std::string::npos) << what;
    EXPECT_NE(what.find(param.problem), std::string::npos) << what;
    EXPECT_EQ(what.find('\n'), std::string::npos) << what;
    EXPECT_LT(what.size(), 400u);
  }
}

INSTANTIATE_TEST_SUITE_P(All, SafetensorsMalformed, testing::ValuesIn(cases()),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(SafetensorsUnsupported, IsRefusedByName) {
  const auto refuse = [](const std::string& inside, size_t n_data, const char* name) {
    const std::string bytes = tensor_of(inside, n_data);
    expect_error<UnsupportedError>([&] { parse_safetensors("u", std::as_bytes(std::span(bytes))); },
                                   {name});
  };
  for (const char* dtype : {"F8_E4M3", "F8_E5M2", "F4"}) {
    const size_t n = dtype[1] == '4' ? 1 : 2;
    refuse(fmt::format(R"("dtype":"{}","shape":[2],"data_offsets":[0,{}])", dtype, n), n, dtype);
  }
  for (const char* dtype : {"U64", "C64"})
    refuse(fmt::format(R"("dtype":"{}","shape":[2],"data_offsets":[0,16])", dtype), 16, dtype);
  refuse(R"("dtype":"F32","shape":[1,1,1,1,1,1,1,1,1],"data_offsets":[0,4])", 4, "9 dimensions");
  refuse(R"("dtype":"F32","scale":2,"shape":[2],"data_offsets":[0,8])", 8, "t'.scale");
}

// A hundred thousand names: memory a small multiple of the file, time linear.
TEST(SafetensorsLimits, ManyTensorsAreReadInLinearTime) {
  std::string header = "{";
  for (int i = 0; i < 100'000; ++i) {
    header += fmt::format(R"({}"tensor.{}":{{"dtype":"U8","shape":[1],"data_offsets":[{},{}]}})",
                          i == 0 ? "" : ",", i, i, i + 1);
  }
  const std::string bytes = file_of(header + "}", 100'000);
  EXPECT_EQ(parse_safetensors("many", std::as_bytes(std::span(bytes))).tensors.size(), 100'000u);
}

}  // namespace
}  // namespace limpid
