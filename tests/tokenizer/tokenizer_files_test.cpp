// vocab.json with merges.txt, tokenizer_config.json, and which files rule where several are.
#include "tokenizer/tokenizer_files.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "checkpoint/temp_file.h"
#include "data_paths.h"
#include "tokenizer/small_vocabulary.h"
#include "tokenizer/tokenizer_config.h"
#include "tokenizer/tokenizer_json_writer.h"
#include "tokenizer/vocab_merges.h"

namespace limpid {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// The small byte-level vocabulary as two files; "<|endoftext|>" follows its normal pieces.
std::string vocab_text(const TokenizerSpec& spec) {
  Json vocab;
  size_t n_normal = 0;
  for (; spec.types[n_normal] == TokenType::kNormal; ++n_normal)
    vocab[spec.pieces[n_normal]] = n_normal;
  vocab["<|endoftext|>"] = n_normal;
  return vocab.dump();
}
std::string merges_text(const TokenizerSpec& spec) {
  std::string text;
  for (const std::string& merge : spec.merges) text += merge + "\n";
  return text;
}

TEST(VocabMerges, ReadsTheTwoFilesWithAndWithoutAVersion) {
  const TokenizerSpec small = small_bpe("gpt-2");
  const std::string vocab = vocab_text(small);
  const std::string merges = merges_text(small);
  const TokenizerSpec plain = read_vocab_and_merges("v", vocab, "m", merges);
  const TokenizerSpec version = read_vocab_and_merges("v", vocab, "m", "#version: 0.2\n" + merges);
  EXPECT_EQ(plain.merges, small.merges);
  EXPECT_EQ(version.merges, small.merges);
  EXPECT_EQ(plain.pieces.back(), "<|endoftext|>");
  EXPECT_EQ(plain.types.back(), TokenType::kControl);
  EXPECT_EQ(find_stop_ids(plain), (std::vector<TokenId>{*plain.eos}));
  const std::string text = "hello world, it's 12 o'clock";
  EXPECT_EQ(Tokenizer::create(plain)->encode(text), Tokenizer::create(small)->encode(text));
}

TEST(VocabMerges, MergesAloneNumberTheVocabularyAsOpenAiDid) {
  const TokenizerSpec spec =
      read_merges_alone("m", "#version: 0.2\n\xC4\xA0 t\nh e\n\xC4\xA0t he\n");
  ASSERT_EQ(spec.pieces.size(), 256U + 3 + 1);
  EXPECT_EQ(spec.pieces[0], "!");
  EXPECT_EQ(spec.pieces[94], "\xC2\xA1");
  EXPECT_EQ(spec.pieces[188], "\xC4\x80");  // byte 0
  EXPECT_EQ(spec.pieces[220], "\xC4\xA0");  // the space
  EXPECT_EQ(spec.pieces[258], "\xC4\xA0the");
  EXPECT_EQ(Tokenizer::create(spec)->encode(" the"), (std::vector<TokenId>{258}));
  EXPECT_THROW(read_merges_alone("m", "h e\nh e\n"), FormatError);
}

TEST(VocabMerges, RefusesWhatIsMalformed) {
  for (const char* merges : {"", "\n", "#version: 0.2\n", "he\n", " h e\n", "h e \n", "h  e\n"})
    EXPECT_THROW(read_merges_alone("m", merges), FormatError) << merges;
  for (const char* vocab : {"", "[]", "{}", "{\"a\": -1}", "{\"a\": 0, \"a\": 1}",
                            "{\"a\": 0, \"b\": 0}", "{\"a\": 4000000}", "{\"a\": \"b\"}"})
    EXPECT_THROW(read_vocab_and_merges("v", vocab, "m", "h e\n"), FormatError) << vocab;
}

TEST(TokenizerConfig, SetsSpecialTokensAndFlags) {
  TokenizerSpec spec = small_bpe("gpt-2");
  const size_t n = spec.pieces.size();
  Json json = {{"bos_token", {{"content", "<s2>"}, {"lstrip", false}}},
               {"eos_token", "<|im_end|>"},
               {"pad_token", nullptr},
               {"add_bos_token", true},
               {"added_tokens_decoder",
                {{std::to_string(n), {{"content", "<s2>"}, {"special", true}, {"rstrip", true}}}}}};
  json["eos_token"] = spec.pieces[n - 1];
  const TokenizerConfig config = read_tokenizer_config("c", json.dump());
  TokenizerSpec of_file = spec;
  apply_tokenizer_config(config, FrameRule::kOfConfig, spec);
  EXPECT_EQ(spec.pieces.size(), n + 1);
  EXPECT_EQ(spec.types.back(), TokenType::kControl);
  EXPECT_EQ(spec.bos, std::optional<TokenId>(static_cast<TokenId>(n)));
  EXPECT_EQ(spec.eos, std::optional<TokenId>(static_cast<TokenId>(n - 1)));
  EXPECT_TRUE(spec.add_bos);
  ASSERT_EQ(spec.added_rules.size(), 1U);
  EXPECT_TRUE(spec.added_rules[0].strip_right);
  EncodeOptions all{.add_special = false};
  all.special.allow = SpecialTokens::Allow::kAll;
  EXPECT_EQ(Tokenizer::create(spec)->encode("<s2> \n", all), (std::vector<TokenId>{*spec.bos}));
  // tokenizer.json knows by itself what frames a text.
  apply_tokenizer_config(config, FrameRule::kOfFile, of_file);
  EXPECT_FALSE(of_file.add_bos);
  EXPECT_TRUE(of_file.bos.has_value());
}

TEST(TokenizerConfig, RefusesWhatContradictsTheVocabulary) {
  const TokenizerSpec spec = small_bpe("gpt-2");
  const std::string n = std::to_string(spec.pieces.size());
  for (const std::string& text :
       {std::string(R"({"bos_token": "nobody"})"), std::string(R"({"eos_token": "nobody"})"),
        R"({"added_tokens_decoder": {")" + n + R"(": {"content": "!"}}})",
        std::string(R"({"added_tokens_decoder": {"3": {"content": "nobody"}}})"),
        std::string(R"({"added_tokens_decoder": {"99999999": {"content": "x"}}})")}) {
    TokenizerSpec changed = spec;
    EXPECT_THROW(
        apply_tokenizer_config(read_tokenizer_config("c", text), FrameRule::kOfConfig, changed),
        FormatError)
        << text;
  }
  for (const char* text :
       {"", "[]", R"({"bos_token": 1})", R"({"bos_token": {}})", R"({"add_bos_token": "yes"})",
        R"({"added_tokens_decoder": {"x": {"content": "a"}}})",
        R"({"added_tokens_decoder": {"-1": {"content": "a"}}})",
        R"({"added_tokens_decoder": {"1": {"content": "a"}, "01": {"content": "b"}}})",
        R"({"added_tokens_decoder": {"1": {"content": ""}}})"}) {
    EXPECT_THROW(read_tokenizer_config("c", text), FormatError) << text;
  }
}

// Older folders name the tokens beyond vocab.json or tokenizer.model in a file of their own.
TEST(TokenizerFiles, AddedTokensMayHaveTheirOwnFile) {
  const TempFolder folder;
  const TokenizerSpec small = small_bpe("gpt-2");
  folder.write("vocab.json", vocab_text(small));
  folder.write("merges.txt", merges_text(small));
  folder.write("special_tokens_map.json", R"({"additional_special_tokens": ["<turn>"]})");
  const auto n = static_cast<TokenId>(Json::parse(vocab_text(small)).size());
  const Json added = {{"<tool>", n + 1}, {"<turn>", n}};
  folder.write("added_tokens.json", added.dump());
  const auto tokenizer = tokenizer_from(find_tokenizer_files(folder.folder()));
  const TokenizerSpec& spec = tokenizer->spec();
  ASSERT_EQ(spec.pieces.size(), static_cast<size_t>(n) + 2);
  EXPECT_EQ(spec.types[static_cast<size_t>(n)], TokenType::kControl);
  EXPECT_EQ(spec.types.back(), TokenType::kUserDefined);
  EncodeOptions all{.add_special = false};
  all.special.allow = SpecialTokens::Allow::kAll;
  EXPECT_EQ(tokenizer->encode("<turn><tool>", all), (std::vector<TokenId>{n, n + 1}));
  // The configuration's own list replaces the file, as in transformers.
  const std::string id = std::to_string(n);
  folder.write("tokenizer_config.json",
               R"({"added_tokens_decoder": {")" + id + R"(": {"content": "<new>"}}})");
  EXPECT_EQ(tokenizer_from(find_tokenizer_files(folder.folder()))->spec().pieces.back(), "<new>");
}

TEST(TokenizerConfig, RefusesMalformedAddedTokens) {
  for (const char* text : {"", "[]", R"({"a": "1"})", R"({"a": -1})", R"({"": 1})",
                           R"({"a": 1, "b": 1})", R"({"a": 2147483648})"}) {
    TokenizerConfig config;
    EXPECT_THROW(add_added_tokens("a", text, config), FormatError) << text;
  }
}

TEST(TokenizerConfig, NamesThePlaceOfABadTokenPrintably) {
  const auto message_of = [](auto read) {
    try {
      read();
    } catch (const FormatError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  TokenizerConfig config;
  for (const std::string& message :
       {message_of([] {
          read_tokenizer_config("c",
                                R"({"added_tokens_decoder": {"\u001b[2J": {"content": "a"}}})");
        }),
        message_of([&] { add_added_tokens("a", R"({"\u001b[2J": "1"})", config); })})
    EXPECT_NE(message.find("\\x1b[2J"), std::string::npos) << message;
}

TEST(TokenizerFiles, ATokenizerJsonMayHaveAnyName) {
  const TempFolder folder;
  folder.write("tokenizer_config.json", R"({"tokenizer_class": "RobertaTokenizer"})");
  const TokenizerSpec small = small_bpe("gpt-2");
  const std::string path = folder.write("mine.json", write_tokenizer_json(small));
  EXPECT_EQ(tokenizer_from(find_tokenizer_files(path))->spec().merges, small.merges);
  for (const char* text : {R"({"model_type": "llama", "vocab_size": 9})", R"({"weight_map": {}})"})
    EXPECT_FALSE(has_tokenizer(find_tokenizer_files(folder.write("config.json", text)))) << text;
}

TEST(TokenizerFiles, OneFileOrAFolder) {
  const TempFolder folder;
  const TokenizerSpec small = small_bpe("gpt-2");
  EXPECT_FALSE(has_tokenizer(find_tokenizer_files(folder.folder())));
  EXPECT_FALSE(has_tokenizer(find_tokenizer_files(folder.write("model.gguf", "GGUF"))));
  EXPECT_FALSE(has_tokenizer(find_tokenizer_files("")));
  const std::string vocab = folder.write("x_vocab.json", vocab_text(small));
  EXPECT_THROW(tokenizer_from(find_tokenizer_files(vocab)), FormatError);  // merges are missing
  folder.write("x_merges.txt", merges_text(small));
  EXPECT_EQ(tokenizer_from(find_tokenizer_files(vocab))->spec().merges, small.merges);
  EXPECT_FALSE(has_tokenizer(find_tokenizer_files(folder.folder())));  // of that prefix alone
  folder.write("vocab.json", vocab_text(small));
  folder.write("merges.txt", merges_text(small));
  folder.write("chat_template.jinja", "J");
  folder.write("chat_template.json", R"({"chat_template": "K"})");
  folder.write("special_tokens_map.json", R"({"eos_token": {"content": "<|endoftext|>"}})");
  EXPECT_EQ(tokenizer_from(find_tokenizer_files(folder.folder()))->spec().pre_tokenizer,
            PreTokenizer::kGpt2);
  folder.write("tokenizer_config.json",
               R"({"tokenizer_class": "Qwen2TokenizerFast", "chat_template": "C"})");
  const TokenizerFiles files = find_tokenizer_files(folder.folder());
  for (const char* template_file : {"chat_template.jinja", "chat_template.json"})
    EXPECT_TRUE(files.contains(template_file)) << template_file;
  const auto qwen = tokenizer_from(files);
  EXPECT_EQ(qwen->spec().pre_tokenizer, PreTokenizer::kQwen2);
  EXPECT_TRUE(qwen->spec().normalize_nfc);
  for (const char* other : {R"({"tokenizer_class": "RobertaTokenizer"})",
                            R"({"tokenizer_class": "GPT2Tokenizer", "add_prefix_space": true})"}) {
    folder.write("tokenizer_config.json", other);
    EXPECT_THROW(tokenizer_from(find_tokenizer_files(folder.folder())), UnsupportedError) << other;
  }
  folder.write("tokenizer.json", "{");  // rules before the others, also when it is broken
  EXPECT_THROW(tokenizer_from(find_tokenizer_files(folder.folder())), FormatError);
}

// The released vocabulary agrees with what its merges number.
TEST(TokenizerFiles, Gpt2sMergesAloneAreItsVocabulary) {
  const std::string path = testing::shared_data_path("tokenizers/gpt2_vocab");
  if (!fs::exists(path + ".bpe")) GTEST_SKIP() << path << ".bpe is not there";
  const TokenizerSpec alone = tokenizer_spec_from(find_tokenizer_files(path + ".bpe"));
  const TokenizerSpec both = tokenizer_spec_from(find_tokenizer_files(path + ".json"));
  EXPECT_EQ(alone.pieces, both.pieces);
  EXPECT_EQ(alone.types, both.types);
  EXPECT_EQ(alone.merges, both.merges);
}

}  // namespace
}  // namespace limpid
