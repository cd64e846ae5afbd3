// tokenizer.json: what is read, and what is refused by name. That the ids are right is
// tests/oracles/tokenizer_files_differential.py's to show.
#include "tokenizer/tokenizer_json.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>

#include "limpid/error.hpp"
#include "tokenizer/small_vocabulary.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/tokenizer_json_writer.h"

namespace limpid {
namespace {

using Json = nlohmann::ordered_json;

// The small byte-level vocabulary as GPT-2's file would hold it.
Json byte_level_json() {
  const TokenizerSpec spec = small_vocabulary("bpe");
  Json json = Json::parse(R"({"version": "1.0", "truncation": null, "padding": null,
    "added_tokens": [], "normalizer": null,
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true},
    "post_processor": null,
    "decoder": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true},
    "model": {"dropout": null, "unk_token": null, "vocab": {}, "merges": []}})");
  for (size_t i = 0; i < spec.pieces.size(); ++i) {
    if (spec.types[i] == TokenType::kNormal) {
      json["model"]["vocab"][spec.pieces[i]] = i;
    } else {
      json["added_tokens"].push_back({{"id", i},
                                      {"content", spec.pieces[i]},
                                      {"special", spec.types[i] == TokenType::kControl}});
    }
  }
  json["model"]["merges"] = spec.merges;
  return json;
}

TokenizerSpec read(const Json& json) { return read_tokenizer_json("t.json", json.dump()); }

TEST(TokenizerJson, ReadsWhatTheVocabularyHolds) {
  const TokenizerSpec wanted = small_vocabulary("bpe");
  const TokenizerSpec spec = read(byte_level_json());
  EXPECT_EQ(spec.kind, TokenizerKind::kByteLevelBpe);
  EXPECT_EQ(spec.pre_tokenizer, PreTokenizer::kGpt2);
  EXPECT_TRUE(spec.splits.empty());
  EXPECT_EQ(spec.pieces, wanted.pieces);
  EXPECT_EQ(spec.types, wanted.types);
  EXPECT_EQ(spec.merges, wanted.merges);
  EXPECT_EQ(spec.first_added, byte_level_json()["model"]["vocab"].size());
  EXPECT_FALSE(spec.add_bos);
}

// A fine-tune that pads with "!" makes it a special token. A text keeps its exclamation marks.
TEST(TokenizerJson, AByteThatIsASpecialTokenStaysInTheText) {
  Json json = byte_level_json();
  const std::string text = "hello! the world!!\n";
  const auto expected = Tokenizer::create(read(json))->encode(text);
  for (const char* piece : {"!", "Ċ"}) {  // the second spells a newline
    for (const bool special : {true, false}) {
      Json changed = json;
      changed["added_tokens"].push_back(
          {{"id", json["model"]["vocab"][piece]}, {"content", piece}, {"special", special}});
      EXPECT_EQ(Tokenizer::create(read(changed))->encode(text), expected) << piece << special;
    }
  }
}

TEST(TokenizerJson, AnUnknownTokenIsRefusedWhereAByteHasNoToken) {
  Json json = byte_level_json();
  json["model"]["unk_token"] = "!";
  EXPECT_NO_THROW(read(json));
  json["model"]["vocab"].erase("Ą");  // byte 4
  try {
    read(json);
    FAIL();
  } catch (const UnsupportedError& error) {
    EXPECT_NE(std::string(error.what()).find("a byte (0x04) has no token"), std::string::npos)
        << error.what();
  }
}

TEST(TokenizerJson, MergesAsPairsAreTheSame) {
  Json json = byte_level_json();
  for (Json& merge : json["model"]["merges"]) {
    const std::string text = merge;
    merge = Json::array({text.substr(0, text.find(' ')), text.substr(text.find(' ') + 1)});
  }
  EXPECT_EQ(read(json).merges, read(byte_level_json()).merges);
}

TEST(TokenizerJson, PostProcessorSaysWhatFramesAText) {
  Json json = byte_level_json();
  const std::string name = json["added_tokens"][0]["content"];
  const int64_t id = json["added_tokens"][0]["id"];
  json["post_processor"] = {
      {"type", "TemplateProcessing"},
      {"single", Json::array({{{"SpecialToken", {{"id", name}, {"type_id", 0}}}},
                              {{"Sequence", {{"id", "A"}, {"type_id", 0}}}}})},
      {"pair", Json::array()},
      {"special_tokens", {{name, {{"id", name}, {"ids", {id}}, {"tokens", {name}}}}}}};
  const TokenizerSpec spec = read(json);
  EXPECT_TRUE(spec.add_bos);
  EXPECT_FALSE(spec.add_eos);
  EXPECT_EQ(spec.bos, std::optional<TokenId>(static_cast<TokenId>(id)));
  json["post_processor"]["special_tokens"][name]["ids"] = {id + 1};
  EXPECT_THROW(read(json), FormatError);
  json["post_processor"]["special_tokens"][name]["ids"] = {id, id};
  EXPECT_THROW(read(json), UnsupportedError);
}

TEST(TokenizerJson, AnUnknownExpressionIsRun) {
  Json json = byte_level_json();
  json["pre_tokenizer"] = Json::parse(R"({"type": "Sequence", "pretokenizers": [
    {"type": "Split", "pattern": {"Regex": "\\p{L}{2}"}, "behavior": "Isolated", "invert": false},
    {"type": "ByteLevel", "add_prefix_space": false, "use_regex": false}]})");
  const TokenizerSpec spec = read(json);
  ASSERT_EQ(spec.splits.size(), 1U);
  EXPECT_EQ(spec.splits[0].pattern, "\\p{L}{2}");
  // Pieces of two letters: nothing merges across.
  const auto tokenizer = Tokenizer::create(spec);
  const auto ids = tokenizer->encode("hellohello");
  size_t at = 0;
  for (const TokenId id : ids) {
    const size_t size = tokenizer->bytes_of(id).size();
    EXPECT_LE(at % 2 + size, 2U);
    at += size;
  }
  EXPECT_EQ(tokenizer->decode(ids), "hellohello");
}

TEST(TokenizerJson, WithoutAnExpressionTheTextIsOnePiece) {
  Json json = byte_level_json();
  json["pre_tokenizer"] = {
      {"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}};
  const TokenizerSpec spec = read(json);
  EXPECT_EQ(spec.pre_tokenizer, PreTokenizer::kNone);
  EXPECT_TRUE(spec.splits.empty());
  EXPECT_EQ(Tokenizer::create(spec)->decode(Tokenizer::create(spec)->encode("a  b")), "a  b");
  EXPECT_EQ(read(Json::parse(write_tokenizer_json(spec))).pre_tokenizer, PreTokenizer::kNone);
}

TEST(TokenizerJson, TheWriterKeepsHowPiecesAreCut) {
  Json json = byte_level_json();
  json["pre_tokenizer"] = Json::parse(R"({"type": "Sequence", "pretokenizers": [
    {"type": "Digits", "individual_digits": false},
    {"type": "Split", "pattern": {"Regex": "[.]"}, "behavior": "Contiguous", "invert": false},
    {"type": "Split", "pattern": {"Regex": "\\w+"}, "behavior": "Removed", "invert": true},
    {"type": "ByteLevel", "add_prefix_space": false, "use_regex": false}]})");
  const TokenizerSpec spec = read(json);
  const TokenizerSpec again = read(Json::parse(write_tokenizer_json(spec)));
  ASSERT_EQ(spec.splits.size(), 3U);
  ASSERT_EQ(again.splits.size(), 3U);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(spec.splits[i].contiguous, i < 2);
    EXPECT_EQ(spec.splits[i].drop_gaps, i == 2);
    EXPECT_EQ(again.splits[i].pattern, spec.splits[i].pattern);
    EXPECT_EQ(again.splits[i].contiguous, spec.splits[i].contiguous);
    EXPECT_EQ(again.splits[i].drop_gaps, spec.splits[i].drop_gaps);
  }
}

// Metaspace writes U+2581 for spaces only after the added tokens are found, normalized ones too.
TEST(TokenizerJson, MetaspaceLeavesTheSpacesToAddedTokens) {
  Json json = Json::parse(R"({"added_tokens": [
      {"id": 261, "content": "<t>", "lstrip": true, "rstrip": true, "normalized": true},
      {"id": 262, "content": "q q", "normalized": true}],
    "pre_tokenizer": {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "never",
      "split": false},
    "decoder": {"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "},
    "model": {"byte_fallback": true, "merges": [],
      "vocab": {"\u2581": 256, "a": 257, "b": 258, "q": 259, "z": 260}}})");
  for (int byte = 0; byte < 256; ++byte)
    json["model"]["vocab"][fmt::format("<0x{:02X}>", byte)] = byte;
  const TokenizerSpec spec = read(json);
  for (const TokenizerSpec& each : {spec, read(Json::parse(write_tokenizer_json(spec)))}) {
    const auto tokenizer = Tokenizer::create(each);
    using Ids = std::vector<TokenId>;
    EXPECT_EQ(tokenizer->encode("a <t> b"), (Ids{257, 261, 258}));
    EXPECT_EQ(tokenizer->encode("aq q b"), (Ids{257, 262, 256, 258}));
    EXPECT_EQ(tokenizer->encode("q\u2581q"), (Ids{259, 256, 259}));
  }
}

// Llama 2's normalizer puts U+2581 before the text and before the name of an added token.
TEST(TokenizerJson, ANormalizedTokenIsDecodedWithItsSpace) {
  Json json = Json::parse(R"({"added_tokens": [{"id": 258, "content": "<t>", "normalized": true}],
    "normalizer": {"type": "Sequence", "normalizers": [
      {"type": "Prepend", "prepend": "\u2581"},
      {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}]},
    "decoder": {"type": "Sequence", "decoders": [
      {"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "},
      {"type": "ByteFallback"}, {"type": "Fuse"},
      {"type": "Strip", "content": " ", "start": 1, "stop": 0}]},
    "model": {"byte_fallback": true, "merges": [], "vocab": {"\u2581": 256, "a": 257}}})");
  for (int byte = 0; byte < 256; ++byte)
    json["model"]["vocab"][fmt::format("<0x{:02X}>", byte)] = byte;
  const auto tokenizer = Tokenizer::create(read(json));
  EXPECT_EQ(tokenizer->encode("a <t> a"), (std::vector<TokenId>{256, 257, 258, 256, 257}));
  for (const char* text : {"a <t> a", "<t>", "<t> a", " <t>", "a<t>a"})
    EXPECT_EQ(tokenizer->decode(tokenizer->encode(text)), text);
}

TEST(TokenizerJson, TheWriterRefusesPiecesThatJsonCannotHold) {
  TokenizerSpec spec = small_vocabulary("bpe");
  spec.pieces.push_back("\xE2\x82");
  spec.types.push_back(TokenType::kNormal);
  EXPECT_THROW(write_tokenizer_json(spec), UnsupportedError);
  spec.pieces.back() = spec.pieces.front();
  EXPECT_THROW(write_tokenizer_json(spec), UnsupportedError);
}

struct Change {
  const char* what;  // must be named in the message
  std::function<void(Json&)> apply;
};

template <class ErrorType>
void expect_refusals(const std::vector<Change>& changes) {
  for (const Change& change : changes) {
    Json json = byte_level_json();
    change.apply(json);
    try {
      read(json);
      ADD_FAILURE() << change.what << " was taken";
    } catch (const ErrorType& error) {
      EXPECT_NE(std::string(error.what()).find(change.what), std::string::npos) << error.what();
    }
  }
}

Json split_of(const char* pattern, const char* behavior) {
  Json json = Json::parse(R"({"type": "Sequence", "pretokenizers": [
    {"type": "Split", "invert": false},
    {"type": "ByteLevel", "add_prefix_space": false, "use_regex": false}]})");
  json["pretokenizers"][0]["pattern"]["Regex"] = pattern;
  json["pretokenizers"][0]["behavior"] = behavior;
  return json;
}

TEST(TokenizerJson, RefusesByNameWhatItDoesNotDo) {
  const auto set = [](const char* pointer, const Json& value) {
    return [pointer, value](Json& json) { json[Json::json_pointer(pointer)] = value; };
  };
  expect_refusals<UnsupportedError>({
      {"'Unigram'", set("/model/type", "Unigram")},
      {"'WordPiece'", set("/model/type", "WordPiece")},
      {"dropout", set("/model/dropout", 0.1)},
      {"continuing_subword_prefix", set("/model/continuing_subword_prefix", "##")},
      {"end_of_word_suffix", set("/model/end_of_word_suffix", "</w>")},
      {"byte_fallback", set("/model/byte_fallback", true)},
      {"model.new_option", set("/model/new_option", 1)},
      {"version", set("/version", "2.0")},
      {"'Lowercase'", set("/normalizer", {{"type", "Lowercase"}})},
      {"'NFKC'", set("/normalizer", {{"type", "NFKC"}})},
      {"normalizer", set("/normalizer", Json::parse(R"({"type": "Replace",
         "pattern": {"String": " "}, "content": "▁"})"))},
      {"normalizer.pattern", set("/normalizer", Json::parse(R"({"type": "Replace",
         "pattern": {"String": "x"}, "content": "▁"})"))},
      {"'Whitespace'", set("/pre_tokenizer", {{"type", "Whitespace"}})},
      {"add_prefix_space", set("/pre_tokenizer/add_prefix_space", true)},
      {"pre_tokenizer.option", set("/pre_tokenizer/option", true)},
      {"'MergedWithPrevious'", set("/pre_tokenizer", split_of("a", "MergedWithPrevious"))},
      {"'Removed'", set("/pre_tokenizer", split_of("a", "Removed"))},
      {"'WordPiece'", set("/decoder", {{"type", "WordPiece"}})},
      {"decoder", set("/decoder", nullptr)},
      {"'BertProcessing'", set("/post_processor", {{"type", "BertProcessing"}})},
      {"added_tokens[0].flag", set("/added_tokens/0/flag", true)},
      {"extra", set("/extra", 1)},
      {"merges", set("/model/merges", Json::array({Json::array({"a b", "c"})}))},
  });
}

TEST(TokenizerJson, RefusesExpressionsByNameWhenItIsBuilt) {
  for (const char* pattern :
       {"\\w+",   "\\bx",        "(a)\\1", "(?<n>a)",  "\\p{Greek}", "[a&&b]",    "[[:alpha:]]",
        "(?#c)a", "(?i:straße)", "a{2}?",  "(?<=a+)b", "[z-a]",      "(",         "a)",
        "*",      "[]",          "\\",     "[a",       "\\xFF",      "a{1,2000}", "\\uD800"}) {
    Json json = byte_level_json();
    json["pre_tokenizer"] = split_of(pattern, "Isolated");
    try {
      Tokenizer::create(read(json));
      ADD_FAILURE() << pattern;
    } catch (const UnsupportedError& error) {
      EXPECT_NE(std::string(error.what()).find(pattern), std::string::npos) << error.what();
    }
  }
}

TEST(TokenizerJson, RefusesWhatContradictsItself) {
  const auto set = [](const char* pointer, const Json& value) {
    return [pointer, value](Json& json) { json[Json::json_pointer(pointer)] = value; };
  };
  const size_t n_added = byte_level_json()["added_tokens"].size();
  ASSERT_GE(n_added, 2U);
  expect_refusals<FormatError>({
      {"model", [](Json& json) { json.erase("model"); }},
      {"model.vocab", [](Json& json) { json["model"].erase("vocab"); }},
      {"model.merges", [](Json& json) { json["model"].erase("merges"); }},
      {"model.vocab", set("/model/vocab", Json::array())},
      {"model.vocab", set("/model/vocab", Json::object())},
      {"model.vocab", set("/model/vocab/!", -1)},
      {"model.vocab", set("/model/vocab/!", "1")},
      {"model.vocab", set("/model/vocab/!", 1.5)},
      {"model.vocab", set("/model/vocab/!", 2'000'000'000)},
      {"is a duplicate", set("/model/vocab/!", 1)},
      {"model.merges", set("/model/merges/0", 7)},
      {"model.merges", set("/model/merges/0", Json::array({"a"}))},
      {"model.merges", set("/model/merges/0", Json::array({"a", 1}))},
      {"model.unk_token", set("/model/unk_token", "nobody")},
      {"added_tokens[0].id", set("/added_tokens/0/id", 3)},
      {"added_tokens[0].id", set("/added_tokens/0/id", "3")},
      {"added_tokens[0].content", set("/added_tokens/0/content", "")},
      {"added_tokens[1].content",
       [](Json& json) { json["added_tokens"][1]["content"] = json["added_tokens"][0]["content"]; }},
      {"added_tokens", set("/added_tokens", 3)},
      {"pre_tokenizer.type", set("/pre_tokenizer", Json::object())},
      {"pre_tokenizer", set("/pre_tokenizer", "ByteLevel")},
  });
  EXPECT_THROW(read_tokenizer_json("t.json", "[]"), FormatError);
  EXPECT_THROW(read_tokenizer_json("t.json", R"({"model": {"vocab": {"a": 0, "a": 1}}})"), Error);
  // What only building shows.
  for (const char* merge : {"a", "a  b", " a", "a b c", "zz zz"}) {
    Json json = byte_level_json();
    json["model"]["merges"].push_back(merge);
    EXPECT_THROW(Tokenizer::create(read(json)), ArgumentError) << merge;
  }
}

}  // namespace
}  // namespace limpid
