#include "model/tokenizer_from_metadata.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>

#include "checkpoint/temp_file.h"
#include "expect_error.h"
#include "limpid/error.hpp"
#include "tokenizer/pre_tokenizer.h"

namespace limpid {
namespace {

using Strings = std::vector<std::string>;
using Integers = std::vector<int64_t>;

Checkpoint bpe_checkpoint() {
  Checkpoint checkpoint;
  checkpoint.path = "model.gguf";
  Metadata& m = checkpoint.metadata;
  m.set("tokenizer.ggml.model", {std::string("gpt2"), "string"});
  m.set("tokenizer.ggml.pre", {std::string("llama-bpe"), "string"});
  m.set("tokenizer.ggml.tokens",
        {Strings{"a", "b", "ab", "<s>", "<|im_end|>", "<|end|>", "</s>"}, "array of string"});
  m.set("tokenizer.ggml.token_type", {Integers{1, 1, 1, 3, 3, 4, 1}, "array of i32"});
  m.set("tokenizer.ggml.merges", {Strings{"a b"}, "array of string"});
  m.set("tokenizer.ggml.bos_token_id", {int64_t{3}, "u32"});
  m.set("tokenizer.ggml.eos_token_id", {int64_t{2}, "u32"});
  return checkpoint;
}

Checkpoint spm_checkpoint() {
  Checkpoint checkpoint;
  checkpoint.path = "model.gguf";
  Metadata& m = checkpoint.metadata;
  m.set("tokenizer.ggml.model", {std::string("llama"), "string"});
  m.set("tokenizer.ggml.tokens", {Strings{"<unk>", "<s>", "</s>", "a"}, "array of string"});
  m.set("tokenizer.ggml.token_type", {Integers{2, 3, 3, 1}, "array of i32"});
  m.set("tokenizer.ggml.scores", {std::vector<double>{0, 0, 0, -1}, "array of f32"});
  m.set("tokenizer.ggml.unknown_token_id", {int64_t{0}, "u32"});
  m.set("tokenizer.ggml.bos_token_id", {int64_t{1}, "u32"});
  return checkpoint;
}

TEST(TokenizerFromMetadata, ReadsAByteLevelVocabulary) {
  const TokenizerSpec spec = tokenizer_spec_from(bpe_checkpoint());
  EXPECT_EQ(spec.kind, TokenizerKind::kByteLevelBpe);
  EXPECT_EQ(spec.pre_tokenizer, PreTokenizer::kLlama3);
  EXPECT_FALSE(spec.normalize_nfc);
  EXPECT_TRUE(spec.ignore_merges);  // by its name
  EXPECT_TRUE(spec.add_bos);        // by its name, as the file does not say
  EXPECT_FALSE(spec.add_eos);
  EXPECT_EQ(spec.bos, 3);
  EXPECT_EQ(spec.types[5], TokenType::kUserDefined);
  // eos by its key, the others by name; "</s>" is a normal token here and ends nothing.
  EXPECT_EQ(spec.stop_ids, (std::vector<TokenId>{2, 4, 5}));
  EXPECT_EQ(tokenizer_from(bpe_checkpoint())->encode("ab"), (std::vector<TokenId>{3, 2}));
}

TEST(TokenizerFromMetadata, ReadsASentencePieceVocabulary) {
  const TokenizerSpec spec = tokenizer_spec_from(spm_checkpoint());
  EXPECT_EQ(spec.kind, TokenizerKind::kSentencePieceBpe);
  EXPECT_TRUE(spec.add_bos);
  EXPECT_EQ(spec.space_prefix, SpacePrefix::kEveryPart);
  EXPECT_EQ(spec.scores[3], -1.0F);
  EXPECT_EQ(spec.stop_ids, (std::vector<TokenId>{2}));
}

TEST(TokenizerFromMetadata, TheFilesOwnWordGoesBeforeTheDefault) {
  Checkpoint checkpoint = bpe_checkpoint();
  checkpoint.metadata.set("tokenizer.ggml.add_bos_token", {false, "bool"});
  checkpoint.metadata.set("tokenizer.ggml.add_eos_token", {true, "bool"});
  const TokenizerSpec spec = tokenizer_spec_from(checkpoint);
  EXPECT_FALSE(spec.add_bos);
  EXPECT_TRUE(spec.add_eos);
  Checkpoint spm = spm_checkpoint();
  spm.metadata.set("tokenizer.ggml.add_space_prefix", {false, "bool"});
  spm.metadata.set("tokenizer.ggml.remove_extra_whitespaces", {true, "bool"});
  EXPECT_EQ(tokenizer_spec_from(spm).space_prefix, SpacePrefix::kNone);
  EXPECT_TRUE(tokenizer_spec_from(spm).remove_extra_whitespaces);
}

TEST(TokenizerFromMetadata, AnEndOfMessageBesideReturnAndCallStopsNothing) {
  Checkpoint checkpoint = bpe_checkpoint();
  checkpoint.metadata.set(
      "tokenizer.ggml.tokens",
      {Strings{"a", "b", "ab", "<s>", "<|return|>", "<|end|>", "<|call|>"}, "array of string"});
  checkpoint.metadata.set("tokenizer.ggml.token_type",
                          {Integers{1, 1, 1, 3, 3, 3, 3}, "array of i32"});
  EXPECT_EQ(tokenizer_spec_from(checkpoint).stop_ids, (std::vector<TokenId>{2, 4, 6}));
}

struct BadKey {
  const char* field;
  std::function<void(Metadata&)> break_it;
};

TEST(TokenizerFromMetadata, NamesTheKeyThatIsWrong) {
  const std::vector<BadKey> bad = {
      {"tokenizer.ggml.tokens",
       [](Metadata& m) {
         m.set("tokenizer.ggml.tokens", {Strings{}, "array of string"});
       }},
      {"tokenizer.ggml.token_type",
       [](Metadata& m) {
         m.set("tokenizer.ggml.token_type", {Integers{1, 1}, "array of i32"});
       }},
      {"tokenizer.ggml.token_type",
       [](Metadata& m) {
         m.set("tokenizer.ggml.token_type", {Integers{1, 1, 1, 3, 3, 4, 9}, "array of i32"});
       }},
      {"tokenizer.ggml.bos_token_id",
       [](Metadata& m) {
         m.set("tokenizer.ggml.bos_token_id", {int64_t{7}, "u32"});
       }},
      {"tokenizer.ggml.eos_token_id",
       [](Metadata& m) {
         m.set("tokenizer.ggml.eos_token_id", {int64_t{-5}, "i32"});
       }},
      {"tokenizer.ggml",
       [](Metadata& m) {
         m.set("tokenizer.ggml.merges", {Strings{"a b", "a b"}, "array of string"});
       }},
      {"tokenizer.ggml",
       [](Metadata& m) {
         m.set("tokenizer.ggml.merges", {Strings{"a z"}, "array of string"});
       }},
  };
  for (const BadKey& key : bad) {
    Checkpoint checkpoint = bpe_checkpoint();
    key.break_it(checkpoint.metadata);
    try {
      tokenizer_from(checkpoint);
      ADD_FAILURE() << key.field;
    } catch (const FormatError& error) {
      EXPECT_EQ(error.field(), key.field) << error.what();
      EXPECT_EQ(error.path(), "model.gguf");
    }
  }
  Checkpoint spm = spm_checkpoint();
  spm.metadata.set("tokenizer.ggml.scores", {std::vector<double>{0, 0}, "array of f32"});
  EXPECT_THROW(tokenizer_spec_from(spm), FormatError);
}

TEST(TokenizerFromMetadata, RefusesByNameWhatItDoesNotKnow) {
  const auto message = [](const char* key, const char* value) -> std::string {
    Checkpoint checkpoint = bpe_checkpoint();
    checkpoint.metadata.set(key, {std::string(value), "string"});
    try {
      tokenizer_spec_from(checkpoint);
      return "";
    } catch (const UnsupportedError& error) {
      return error.what();
    }
  };
  EXPECT_EQ(message("tokenizer.ggml.token_type", "1"),
            "model.gguf: tokenizer.ggml.token_type is not an array of integers");
  for (const char* name : {"default", "falcon", "", "gpt-5", "Llama-bpe"}) {
    const std::string quoted = "'" + std::string(name) + "'";
    EXPECT_NE(message("tokenizer.ggml.pre", name).find(quoted), std::string::npos) << name;
  }
  EXPECT_NE(message("tokenizer.ggml.model", "bert").find("'bert'"), std::string::npos);
  EXPECT_NE(message("tokenizer.ggml.model", "t5").find("'t5'"), std::string::npos);
}

// GPT-2's two files for the bytes and "he", in a folder of their own.
TokenizerFiles files_beside_weights() {
  const TempFolder folder;  // the files stay mapped when it is gone
  folder.write("merges.txt", "#version: 0.2\nh e\n");
  folder.write("chat_template.jinja", "J");
  return find_tokenizer_files(folder.folder());
}

TEST(TokenizerFromAttachments, StandsInWhereThereAreNoKeys) {
  Checkpoint checkpoint;
  checkpoint.path = "folder";
  EXPECT_FALSE(has_tokenizer(checkpoint));
  checkpoint.attachments = files_beside_weights();
  checkpoint.metadata.set("tokenizer.stop_token_ids",
                          {std::vector<int64_t>{256, 5, 1'000'000, -1}, "array of u32"});
  ASSERT_TRUE(has_tokenizer(checkpoint));
  const auto tokenizer = tokenizer_from(checkpoint);
  EXPECT_EQ(tokenizer->encode("he"), (std::vector<TokenId>{256}));
  EXPECT_EQ(tokenizer->spec().stop_ids, (std::vector<TokenId>{5, 256, 257}));
  // The keys rule where there are both.
  Checkpoint both = bpe_checkpoint();
  both.attachments = checkpoint.attachments;
  EXPECT_EQ(tokenizer_spec_from(both).pieces, tokenizer_spec_from(bpe_checkpoint()).pieces);
}

TEST(TokenizerFromAttachments, AWrongMergeIsToldWithItsFiles) {
  const TempFolder folder;
  folder.write("added_tokens.json", "{}");
  const std::string merges = folder.write("merges.txt", "h e\n");
  const std::string vocabulary = folder.write("vocab.json", R"({"h": 0, "e": 1})");
  Checkpoint checkpoint;
  checkpoint.path = folder.folder();
  checkpoint.attachments = find_tokenizer_files(checkpoint.path);
  const std::string told = fmt::format(
      "{} with {}: tokenizer: merges[0] contains a piece that is not", vocabulary, merges);
  expect_error<FormatError>([&] { tokenizer_from(checkpoint); }, {told});
  expect_error<FormatError>([&] { tokenizer_from(checkpoint.attachments); }, {told});
}

TEST(TokenizerFromAttachments, AnAbsentVocabularyLeavesTheWordToThem) {
  Checkpoint checkpoint;
  checkpoint.path = "model.gguf";
  checkpoint.metadata.set("tokenizer.ggml.model", {std::string("no_vocab"), "string"});
  EXPECT_FALSE(has_tokenizer(checkpoint));
  EXPECT_THROW(tokenizer_from(checkpoint), UnsupportedError);
  checkpoint.attachments = files_beside_weights();
  ASSERT_TRUE(has_tokenizer(checkpoint));
  EXPECT_EQ(tokenizer_from(checkpoint)->encode("he"), (std::vector<TokenId>{256}));
}

TEST(TokenizerFromAttachments, AnotherTokenizerTakesThePlaceOfTheModelsOwn) {
  Checkpoint checkpoint = bpe_checkpoint();
  checkpoint.metadata.set("tokenizer.chat_template", {std::string("old"), "string"});
  replace_tokenizer(checkpoint, files_beside_weights());
  EXPECT_EQ(tokenizer_spec_from(checkpoint).pieces.size(), 258U);
  EXPECT_EQ(checkpoint.metadata.string("tokenizer.chat_template"), "J");
}

}  // namespace
}  // namespace limpid
