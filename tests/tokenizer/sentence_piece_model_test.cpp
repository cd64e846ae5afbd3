#include "tokenizer/sentence_piece_model.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "checkpoint/temp_file.h"
#include "limpid/error.hpp"
#include "tokenizer/small_vocabulary.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/tokenizer_files.h"

namespace limpid {
namespace {

void put_varint(uint64_t value, std::string& out) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
}
void put_number(uint32_t field, uint64_t value, std::string& out) {
  put_varint(field << 3, out);
  put_varint(value, out);
}
void put_bytes(uint32_t field, std::string_view bytes, std::string& out) {
  put_varint(field << 3 | 2, out);
  put_varint(bytes.size(), out);
  out += bytes;
}

std::string piece_message(const std::string& piece, float score, uint64_t type) {
  std::string message;
  put_bytes(1, piece, message);
  put_varint(2 << 3 | 5, message);
  char raw[4];
  std::memcpy(raw, &score, 4);
  message.append(raw, 4);
  if (type != 1) put_number(3, type, message);
  return message;
}

struct Model {
  TokenizerSpec spec = small_vocabulary("spm");
  std::string trainer, normalizer, extra;

  Model() {
    put_number(3, 2, trainer);  // BPE
    put_number(4, 0, normalizer);
    for (size_t i = 0; i < spec.types.size(); ++i) {
      if (spec.types[i] == TokenType::kUserDefined) spec.types[i] = TokenType::kControl;
    }
  }
  std::string bytes() const {
    std::string file;
    for (size_t i = 0; i < spec.pieces.size(); ++i) {
      put_bytes(1,
                piece_message(spec.pieces[i], spec.scores[i], static_cast<uint64_t>(spec.types[i])),
                file);
    }
    put_bytes(2, trainer, file);
    put_bytes(3, normalizer, file);
    return file + extra;
  }
};

TEST(SentencePieceModel, GivesTheSameIdsAsItsMetadata) {
  Model model;
  const TokenizerSpec spec = read_sentence_piece_model("t.model", model.bytes());
  EXPECT_EQ(spec.pieces, model.spec.pieces);
  EXPECT_EQ(spec.scores, model.spec.scores);
  EXPECT_EQ(spec.types, model.spec.types);
  EXPECT_EQ(spec.bos, std::optional<TokenId>(1));
  EXPECT_EQ(spec.space_prefix, SpacePrefix::kEveryPart);
  EXPECT_FALSE(spec.remove_extra_whitespaces);
  const std::string text = "hello  world 123 \xE4\xB8\x80\n";
  EncodeOptions options{.add_special = false};
  EXPECT_EQ(Tokenizer::create(spec)->encode(text, options),
            Tokenizer::create(model.spec)->encode(text, options));
}

TEST(SentencePieceModel, TheNormalizerSaysWhatHappensToSpaces) {
  Model model;
  put_number(3, 0, model.normalizer);
  put_number(4, 1, model.normalizer);
  const TokenizerSpec spec = read_sentence_piece_model("t.model", model.bytes());
  EXPECT_EQ(spec.space_prefix, SpacePrefix::kNone);
  EXPECT_TRUE(spec.remove_extra_whitespaces);
}

TEST(SentencePieceModel, SuperfluousSpacesAreRemoved) {
  Model model;
  put_number(4, 1, model.normalizer);
  const auto tokenizer = Tokenizer::create(read_sentence_piece_model("t.model", model.bytes()));
  const auto expected = tokenizer->encode("hello world");
  for (const char* text : {"  hello   world ", "hello world\u2581", "hello world \u2581\u2581 "})
    EXPECT_EQ(tokenizer->encode(text), expected) << text;
  EXPECT_EQ(tokenizer->encode(" \u2581"), tokenizer->encode(""));
}

TEST(SentencePieceModel, UserDefinedSymbolsHaveSpaces) {
  Model model;
  put_number(3, 0, model.normalizer);
  model.spec.pieces.back() = "\u2581\u2581hello\u2581";
  model.spec.types.back() = TokenType::kUserDefined;
  const auto tokenizer = Tokenizer::create(read_sentence_piece_model("t.model", model.bytes()));
  const TokenId id = tokenizer->vocab_size() - 1;
  const std::vector<TokenId> ids = tokenizer->encode("  hello ", {.add_special = false});
  EXPECT_EQ(ids, std::vector<TokenId>{id});
  EXPECT_EQ(tokenizer->decode(ids), "  hello ");
}

// As in transformers 5. The pieces "tion" and "en" of "nationens" must not merge to "tionen".
TEST(SentencePieceModel, AddedTokensAreFoundInTheTextAndNotMerged) {
  const TempFolder folder;
  const Model model;
  folder.write("tokenizer.model", model.bytes());
  const auto plain = tokenizer_from(find_tokenizer_files(folder.folder()));
  const auto n = static_cast<TokenId>(model.spec.pieces.size());
  folder.write("tokenizer_config.json",
               fmt::format(R"({{"added_tokens_decoder": {{"{}": {{"content": "<call>"}},
                               "{}": {{"content": "tionen", "single_word": true}}}}}})",
                           n, n + 1));
  const auto tokenizer = tokenizer_from(find_tokenizer_files(folder.folder()));
  const EncodeOptions bare{.add_special = false};
  EXPECT_EQ(tokenizer->encode("nationens", bare), plain->encode("nationens", bare));
  EXPECT_EQ(tokenizer->encode("tionen", bare), std::vector<TokenId>{n + 1});
  std::vector<TokenId> expected = plain->encode("a", bare);
  expected.push_back(n);
  plain->encode("b", bare, expected);
  EXPECT_EQ(tokenizer->encode("a<call>b", bare), expected);
}

TEST(SentencePieceModel, RefusesByNameWhatItDoesNotDo) {
  const auto message = [](const Model& model) -> std::string {
    try {
      read_sentence_piece_model("t.model", model.bytes());
      return "";
    } catch (const UnsupportedError& error) {
      return error.what();
    }
  };
  const auto expect = [&](const Model& model, const char* what) {
    EXPECT_NE(message(model).find(what), std::string::npos) << what << ": " << message(model);
  };
  EXPECT_EQ(message(Model()), "");
  Model unigram;
  unigram.trainer.clear();
  expect(unigram, "unigram");
  Model chars_map;
  put_bytes(2, "map", chars_map.normalizer);
  expect(chars_map, "precompiled_charsmap");
  Model unescaped;
  put_number(5, 0, unescaped.normalizer);
  expect(unescaped, "escape_whitespaces");
  Model suffix;
  put_number(24, 1, suffix.trainer);
  expect(suffix, "treat_whitespace_as_suffix");
  Model unused;
  unused.spec.types.back() = TokenType::kUnused;
  expect(unused, "UNUSED");
  Model user;
  user.spec.types.back() = TokenType::kUserDefined;
  expect(user, "add_dummy_prefix");
  put_number(3, 0, user.normalizer);
  EXPECT_EQ(message(user), "");
  put_number(4, 1, user.normalizer);
  expect(user, "remove_extra_whitespaces");
  Model no_bytes;
  for (TokenType& type : no_bytes.spec.types) {
    if (type == TokenType::kByte) type = TokenType::kNormal;
  }
  expect(no_bytes, "byte pieces");
}

TEST(SentencePieceModel, RefusesWhatIsMalformed) {
  const std::string good = Model().bytes();
  // Cut anywhere, it is broken or lacks its trainer; without the last message it is a model whose
  // normalizer is the format's default.
  const size_t without_normalizer = good.size() - Model().normalizer.size() - 2;
  EXPECT_TRUE(
      read_sentence_piece_model("t", good.substr(0, without_normalizer)).remove_extra_whitespaces);
  for (size_t size = 0; size < good.size(); size += size + 300 < good.size() ? 37 : 1) {
    if (size == without_normalizer) continue;
    ASSERT_THROW(read_sentence_piece_model("t", good.substr(0, size)), Error) << size;
  }
  const auto with = [&](const std::string& extra) { return good + extra; };
  EXPECT_THROW(read_sentence_piece_model("t", with(std::string("\x0b", 1))), FormatError);  // group
  EXPECT_THROW(read_sentence_piece_model("t", with(std::string("\x00", 1))),
               FormatError);  // field 0
  EXPECT_THROW(read_sentence_piece_model("t", with("\x0a\xff\xff\xff\xff\x0f")), FormatError);
  EXPECT_THROW(read_sentence_piece_model("t", with("\x20" + std::string(10, '\xff') + "\x01")),
               FormatError);
  EXPECT_THROW(read_sentence_piece_model("t", with("\x08\x01")), FormatError);  // pieces: a number
  for (const auto& [piece, score, type] : {std::tuple<std::string, float, uint64_t>{"", 0.0F, 1},
                                           {"x", std::numeric_limits<float>::quiet_NaN(), 1},
                                           {"x", 0.0F, 7},
                                           {"x", 0.0F, 0}}) {
    std::string extra;
    put_bytes(1, piece_message(piece, score, type), extra);
    EXPECT_THROW(read_sentence_piece_model("t", with(extra)), FormatError);
  }
  Model far;
  put_number(41, 1'000'000, far.trainer);
  EXPECT_THROW(read_sentence_piece_model("t", far.bytes()), FormatError);
}

}  // namespace
}  // namespace limpid
