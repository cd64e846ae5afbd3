#include "tokenizer/protobuf_reader.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>

#include "limpid/error.hpp"

namespace limpid {

void ProtobufReader::fail(std::string_view name, const std::string& problem) const {
  throw FormatError(*path_, base_ + at_, std::string(name), problem);
}

std::string_view ProtobufReader::take(uint64_t size) {
  if (size > bytes_.size() - at_)
    fail("field", fmt::format("has {} bytes where {} are left", size, bytes_.size() - at_));
  const std::string_view taken = bytes_.substr(at_, size);
  at_ += size;
  return taken;
}

uint64_t ProtobufReader::read_varint() {
  uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    const auto byte = static_cast<uint8_t>(take(1).front());
    if (shift == 63 && byte > 1) break;
    value |= static_cast<uint64_t>(byte & 0x7F) << shift;
    if ((byte & 0x80) == 0) return value;
  }
  fail("varint", "is longer than 64 bits");
}

// A field begins with a varint that is field number * 8 + wire type. A varint has seven bits per
// byte, the lowest first, and the top bit says that more bytes follow: 300 is 0xAC 0x02.
bool ProtobufReader::next() {
  if (at_ == bytes_.size()) return false;
  const uint64_t key = read_varint();
  if (key >> 3 == 0 || key >> 3 >= uint64_t{1} << 29) fail("field", "has no valid number");
  field_ = static_cast<uint32_t>(key >> 3);
  wire_type_ = key & 7;
  switch (wire_type_) {
    case kVarint:
      number_ = read_varint();
      return true;
    case kFixed64:
    case kFixed32: {
      const std::string_view raw = take(wire_type_ == kFixed64 ? 8 : 4);
      number_ = 0;
      std::memcpy(&number_, raw.data(), raw.size());
      return true;
    }
    case kBytes:
      value_ = take(read_varint());
      return true;
    default:
      fail("field", fmt::format("{} has wire type {}", field_, wire_type_));
  }
}

uint64_t ProtobufReader::varint(std::string_view name) const {
  if (wire_type_ != kVarint) fail(name, "is not a varint");
  return number_;
}

float ProtobufReader::float32(std::string_view name) const {
  if (wire_type_ != kFixed32) fail(name, "is not a 32-bit number");
  return std::bit_cast<float>(static_cast<uint32_t>(number_));
}

std::string_view ProtobufReader::bytes(std::string_view name) const {
  if (wire_type_ != kBytes) fail(name, "is not a string");
  return value_;
}

ProtobufReader ProtobufReader::message(std::string_view name) const {
  const std::string_view inner = bytes(name);
  return {*path_, inner, base_ + static_cast<uint64_t>(inner.data() - bytes_.data())};
}

}  // namespace limpid
