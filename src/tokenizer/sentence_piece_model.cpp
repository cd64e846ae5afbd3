#include "tokenizer/sentence_piece_model.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "base/text.h"
#include "limpid/error.hpp"

namespace limpid {
namespace {

// Iterates over the fields of one message. Every length is checked against the end of the message.
// Groups (wire types 3 and 4) are refused.
class ProtobufReader {
 public:
  // `path` is used in messages and must outlive the reader. `offset` is the position of `bytes` in
  // the file.
  ProtobufReader(const std::string& path, std::string_view bytes, uint64_t offset = 0)
      : path_(&path), bytes_(bytes), base_(offset) {}

  // Reads the next field; false at the end of the message. Throws FormatError.
  // A field begins with a varint that is field number * 8 + wire type. A varint has seven bits per
  // byte, the lowest first, and the top bit says that more bytes follow: 300 is 0xAC 0x02.
  bool next() {
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
        fail("field", "{} has wire type {}", field_, wire_type_);
    }
  }
  uint32_t field() const { return field_; }

  // Returns the field's value. Throws FormatError if its wire type differs. `name` is used in
  // messages.
  uint64_t varint(std::string_view name) const {
    if (wire_type_ != kVarint) fail(name, "is not a varint");
    return number_;
  }
  bool boolean(std::string_view name) const { return varint(name) != 0; }
  int32_t int32(std::string_view name) const { return static_cast<int32_t>(varint(name)); }
  float float32(std::string_view name) const {
    if (wire_type_ != kFixed32) fail(name, "is not a 32-bit number");
    return std::bit_cast<float>(static_cast<uint32_t>(number_));
  }
  std::string_view bytes(std::string_view name) const {
    if (wire_type_ != kBytes) fail(name, "is not a string");
    return value_;
  }
  // Returns a reader for a field that contains a message.
  ProtobufReader message(std::string_view name) const {
    const std::string_view inner = bytes(name);
    return {*path_, inner, base_ + static_cast<uint64_t>(inner.data() - bytes_.data())};
  }

  // Throws FormatError at the field that was read last.
  template <typename... Args>
  [[noreturn]] void fail(std::string_view name, fmt::format_string<Args...> problem,
                         Args&&... args) const {
    throw FormatError(*path_, base_ + at_, std::string(name),
                      fmt::format(problem, std::forward<Args>(args)...));
  }

 private:
  enum WireType : uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };
  uint64_t read_varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<uint8_t>(take(1).front());
      if (shift == 63 && byte > 1) break;
      value |= static_cast<uint64_t>(byte & 0x7F) << shift;
      if ((byte & 0x80) == 0) return value;
    }
    fail("varint", "is longer than 64 bits");
  }
  std::string_view take(uint64_t size) {
    if (size > bytes_.size() - at_)
      fail("field", "has {} bytes where {} are left", size, bytes_.size() - at_);
    const std::string_view taken = bytes_.substr(at_, size);
    at_ += size;
    return taken;
  }

  const std::string* path_;
  std::string_view bytes_;
  uint64_t base_;
  size_t at_ = 0;
  uint32_t field_ = 0;
  uint32_t wire_type_ = 0;
  uint64_t number_ = 0;     // value of kVarint and of the fixed types
  std::string_view value_;  // value of kBytes
};

// Field numbers of sentencepiece_model.proto.
namespace model_field {
constexpr uint32_t kPieces = 1, kTrainer = 2, kNormalizer = 3;
}
namespace piece_field {
constexpr uint32_t kPiece = 1, kScore = 2, kType = 3;
}
namespace trainer_field {
constexpr uint32_t kModelType = 3, kSpaceAsSuffix = 24, kUnknownId = 40, kBosId = 41, kEosId = 42,
                   kPadId = 43;
}
namespace normalizer_field {
constexpr uint32_t kCharsMap = 2, kDummyPrefix = 3, kRemoveSpaces = 4, kEscapeSpaces = 5;
}

constexpr std::array<std::string_view, 5> kModelTypes = {"", "unigram", "BPE", "word", "char"};

// The fields of trainer_spec that affect the ids.
struct Trainer {
  uint64_t model_type = 1;  // unigram, the format's default
  bool space_as_suffix = false;
  int32_t unknown = 0, bos = 1, eos = 2, pad = -1;
};

// The fields of normalizer_spec.
struct Normalizer {
  bool has_chars_map = false;
  bool dummy_prefix = true;
  bool remove_spaces = true;
  bool escape_spaces = true;
};

// One piece: its text, score and type. A user-defined symbol is found in the text itself, so it
// gets spaces for U+2581, as in GGUF.
void read_piece(ProtobufReader reader, TokenizerSpec& spec) {
  std::string_view piece;
  float score = 0;
  uint64_t type = 1;
  while (reader.next()) {
    if (reader.field() == piece_field::kPiece) piece = reader.bytes("piece");
    if (reader.field() == piece_field::kScore) score = reader.float32("score");
    if (reader.field() == piece_field::kType) type = reader.varint("type");
  }
  if (piece.empty()) reader.fail("piece", "is empty");
  if (std::isnan(score)) reader.fail("score", "is not a number");
  if (type < 1 || type > 6) reader.fail("type", "is {}, not one of 1 to 6", type);
  spec.scores.push_back(score);
  spec.types.push_back(static_cast<TokenType>(type));
  const bool is_symbol = spec.types.back() == TokenType::kUserDefined;
  spec.pieces.push_back(is_symbol ? replaced(piece, kSpaceMark, " ") : std::string(piece));
}

// Fields that do not affect the ids are skipped; unknown fields are skipped too, as Protocol
// Buffers define.
Trainer read_trainer(ProtobufReader reader) {
  Trainer trainer;
  while (reader.next()) {
    const uint32_t field = reader.field();
    if (field == trainer_field::kModelType) trainer.model_type = reader.varint("model_type");
    if (field == trainer_field::kSpaceAsSuffix)
      trainer.space_as_suffix = reader.boolean("treat_whitespace_as_suffix");
    if (field == trainer_field::kUnknownId) trainer.unknown = reader.int32("unk_id");
    if (field == trainer_field::kBosId) trainer.bos = reader.int32("bos_id");
    if (field == trainer_field::kEosId) trainer.eos = reader.int32("eos_id");
    if (field == trainer_field::kPadId) trainer.pad = reader.int32("pad_id");
  }
  return trainer;
}

Normalizer read_normalizer(ProtobufReader reader) {
  Normalizer normalizer;
  while (reader.next()) {
    const uint32_t field = reader.field();
    if (field == normalizer_field::kCharsMap)
      normalizer.has_chars_map = !reader.bytes("precompiled_charsmap").empty();
    if (field == normalizer_field::kDummyPrefix)
      normalizer.dummy_prefix = reader.boolean("add_dummy_prefix");
    if (field == normalizer_field::kRemoveSpaces)
      normalizer.remove_spaces = reader.boolean("remove_extra_whitespaces");
    if (field == normalizer_field::kEscapeSpaces)
      normalizer.escape_spaces = reader.boolean("escape_whitespaces");
  }
  return normalizer;
}

// Refuses models whose ids this implementation would not reproduce.
void refuse_others(const std::string& path, const Trainer& trainer, const Normalizer& normalizer,
                   const TokenizerSpec& spec) {
  const auto refuse = [&](std::string_view what) {
    throw UnsupportedError(fmt::format("{}: {}", path, what));
  };
  if (trainer.model_type != 2) {
    refuse(fmt::format("a SentencePiece model of type {} is not supported, only BPE",
                       trainer.model_type < kModelTypes.size()
                           ? std::string(kModelTypes[trainer.model_type])
                           : std::to_string(trainer.model_type)));
  }
  if (normalizer.has_chars_map)
    refuse("normalizer_spec.precompiled_charsmap: only the identity is supported");
  if (!normalizer.escape_spaces)
    refuse("normalizer_spec.escape_whitespaces: false is not supported");
  if (trainer.space_as_suffix)
    refuse("trainer_spec.treat_whitespace_as_suffix: true is not supported");
  size_t n_bytes = 0;
  for (const TokenType type : spec.types) {
    if (type == TokenType::kByte) ++n_bytes;
    if (type == TokenType::kUnused) refuse("pieces of type UNUSED are not supported");
    if (type != TokenType::kUserDefined) continue;
    if (normalizer.dummy_prefix)
      refuse("user-defined symbols with add_dummy_prefix are not supported");
    if (normalizer.remove_spaces)
      refuse("user-defined symbols with remove_extra_whitespaces are not supported");
  }
  if (n_bytes == 0) refuse("a vocabulary without byte pieces is not supported");
}

}  // namespace

TokenizerSpec read_sentence_piece_model(const std::string& path, std::string_view bytes) {
  TokenizerSpec spec;
  spec.kind = TokenizerKind::kSentencePieceBpe;
  spec.merge_order = MergeOrder::kScores;
  Trainer trainer;
  Normalizer normalizer;
  ProtobufReader reader(path, bytes);
  while (reader.next()) {
    if (reader.field() == model_field::kPieces) read_piece(reader.message("pieces"), spec);
    if (reader.field() == model_field::kTrainer)
      trainer = read_trainer(reader.message("trainer_spec"));
    if (reader.field() == model_field::kNormalizer)
      normalizer = read_normalizer(reader.message("normalizer_spec"));
  }
  if (spec.pieces.empty()) reader.fail("pieces", "are missing");
  refuse_others(path, trainer, normalizer, spec);
  const auto id = [&](int32_t value, std::string_view name) -> std::optional<TokenId> {
    if (value < 0) return std::nullopt;
    if (static_cast<size_t>(value) >= spec.pieces.size()) {
      reader.fail(name, "is {}, outside a vocabulary of {} tokens", value, spec.pieces.size());
    }
    return value;
  };
  spec.unknown = id(trainer.unknown, "unk_id");
  spec.bos = id(trainer.bos, "bos_id");
  spec.eos = id(trainer.eos, "eos_id");
  spec.pad = id(trainer.pad, "pad_id");
  spec.add_bos = spec.bos.has_value();
  spec.space_prefix = normalizer.dummy_prefix ? SpacePrefix::kEveryPart : SpacePrefix::kNone;
  spec.remove_extra_whitespaces = normalizer.remove_spaces;
  // The files beside it may add tokens, which are cut out of the text before anything else.
  spec.first_added = spec.pieces.size();
  spec.normalizes_spaces = false;
  return spec;
}

}  // namespace limpid
