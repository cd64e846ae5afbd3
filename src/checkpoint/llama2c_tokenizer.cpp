#include <fmt/format.h>

#include <cmath>
#include <string>
#include <vector>

#include "base/printable.h"
#include "base/text.h"
#include "checkpoint/byte_reader.h"
#include "checkpoint/llama2c.h"
#include "checkpoint/metadata.h"

namespace limpid {
namespace {

// Token types of GGUF vocabularies.
constexpr int64_t kNormal = 1;
constexpr int64_t kUnknown = 2;
constexpr int64_t kControl = 3;
constexpr int64_t kByte = 6;

// The vocabulary is Llama's: <unk>, <s>, </s>, then the 256 bytes, then the pieces.
constexpr int64_t kFirstByteToken = 3;
constexpr int64_t kLastByteToken = kFirstByteToken + 255;
constexpr int32_t kLongestToken = 1 << 16;

// The file states no types; the position of a token tells its type.
int64_t type_of(int64_t id) {
  if (id == 0) return kUnknown;
  if (id < kFirstByteToken) return kControl;
  return id <= kLastByteToken ? kByte : kNormal;
}

// llama2.c stores each piece as it prints. A GGUF vocabulary stores pieces as SentencePiece does,
// with U+2581 for a space.
std::string to_sentencepiece(int64_t id, std::string_view piece) {
  if (id == 1) return "<s>";
  if (id == 2) return "</s>";
  return replaced(piece, " ", "\u2581");
}

}  // namespace

// The file: i32 max_token_length, then for each token f32 score, i32 length and the piece.
void parse_llama2c_tokenizer(const std::string& path, std::span<const std::byte> bytes,
                             int64_t vocab_size, Metadata& metadata) {
  ByteReader reader(path, bytes);
  const auto longest = reader.number<int32_t>("max_token_length");
  if (longest < 1 || longest > kLongestToken) {
    reader.fail(0, "max_token_length",
                "{} is not from 1 to {}; this is not a tokenizer: name a tokenizer.json, "
                "tokenizer.model, *.tiktoken, vocab.json or llama2.c's tokenizer.bin",
                longest, kLongestToken);
  }
  std::vector<std::string> tokens;
  std::vector<double> scores;
  std::vector<int64_t> types;
  for (int64_t id = 0; id < vocab_size; ++id) {
    const std::string field = fmt::format("token[{}]", id);
    const uint64_t start = reader.offset();
    const auto score = reader.number<float>(field + ".score");
    if (std::isnan(score)) reader.fail(start, field + ".score", "is not a number");
    const auto length = reader.number<int32_t>(field + ".length");
    if (length < 1 || length > longest) {
      reader.fail(start + 4, field + ".length", "{} is not from 1 to {}", length, longest);
    }
    const std::string_view piece = reader.take(static_cast<uint64_t>(length), field + ".piece");
    const int64_t type = type_of(id);
    if (type == kByte && piece != fmt::format("<0x{:02X}>", id - kFirstByteToken)) {
      reader.fail(start + 8, field + ".piece", "'{}', expected the byte <0x{:02X}>",
                  printable(piece), id - kFirstByteToken);
    }
    tokens.push_back(to_sentencepiece(id, piece));
    scores.push_back(score);
    types.push_back(type);
  }
  if (reader.remaining() != 0) {
    reader.fail(reader.offset(), "end",
                "{} bytes follow the {} tokens of the model's vocabulary: another model's "
                "tokenizer?",
                reader.remaining(), vocab_size);
  }
  KeyWriter keys(metadata, "tokenizer.ggml.");
  keys.string("model", "llama");
  keys.set("tokens", {std::move(tokens), "array of string"});
  keys.set("scores", {std::move(scores), "array of f32"});
  keys.set("token_type", {std::move(types), "array of i32"});
  keys.integer("unknown_token_id", 0);
  keys.integer("bos_token_id", 1);
  keys.integer("eos_token_id", 2);
  keys.flag("add_bos_token", true);
  keys.flag("add_eos_token", false);
  keys.flag("add_space_prefix", true);
}

}  // namespace limpid
