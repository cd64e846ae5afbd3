// Protocol Buffers' wire format, as far as reading a SentencePiece model needs it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace limpid {

// The fields of one message, one after the other. Every length is checked against the message's
// end; groups (wire types 3 and 4) are refused.
class ProtobufReader {
 public:
  // `path` is for messages and must outlive the reader. `offset`: of `bytes` within the file.
  ProtobufReader(const std::string& path, std::string_view bytes, uint64_t offset = 0)
      : path_(&path), bytes_(bytes), base_(offset) {}

  // Reads the next field; false at the end of the message. Throws FormatError.
  bool next();
  uint32_t field() const { return field_; }

  // The field's value; FormatError if its wire type is another. `name` is for messages.
  uint64_t varint(std::string_view name) const;
  bool boolean(std::string_view name) const { return varint(name) != 0; }
  int32_t int32(std::string_view name) const { return static_cast<int32_t>(varint(name)); }
  float float32(std::string_view name) const;
  std::string_view bytes(std::string_view name) const;
  // The field as a message of its own.
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
  uint64_t number_ = 0;     // of kVarint and the fixed types
  std::string_view value_;  // of kBytes
};

}  // namespace limpid
