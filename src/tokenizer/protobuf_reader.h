// Reads the wire format of Protocol Buffers, as far as SentencePiece models need it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace limpid {

// Iterates over the fields of one message. Every length is checked against the end of the message.
// Groups (wire types 3 and 4) are refused.
class ProtobufReader {
 public:
  // `path` is used in messages and must outlive the reader. `offset` is the position of `bytes` in
  // the file.
  ProtobufReader(const std::string& path, std::string_view bytes, uint64_t offset = 0)
      : path_(&path), bytes_(bytes), base_(offset) {}

  // Reads the next field; false at the end of the message. Throws FormatError.
  bool next();
  uint32_t field() const { return field_; }

  // Returns the field's value. Throws FormatError if its wire type differs. `name` is used in
  // messages.
  uint64_t varint(std::string_view name) const;
  bool boolean(std::string_view name) const { return varint(name) != 0; }
  int32_t int32(std::string_view name) const { return static_cast<int32_t>(varint(name)); }
  float float32(std::string_view name) const;
  std::string_view bytes(std::string_view name) const;
  // Returns a reader for a field that contains a message.
  ProtobufReader message(std::string_view name) const;

  // Throws FormatError at the field that was read last.
  [[noreturn]] void fail(std::string_view name, const std::string& problem) const;

 private:
  enum WireType : uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };
  uint64_t read_varint();
  std::string_view take(uint64_t size);

  const std::string* path_;
  std::string_view bytes_;
  uint64_t base_;
  size_t at_ = 0;
  uint32_t field_ = 0;
  uint32_t wire_type_ = 0;
  uint64_t number_ = 0;     // value of kVarint and of the fixed types
  std::string_view value_;  // value of kBytes
};

}  // namespace limpid
