#include "tokenizer/token_tree.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tokenizer/small_vocabulary.h"

namespace limpid {
namespace {

// a, b, c, ab, bc, abc-less: merging takes "bc" first, the tree "ab".
std::shared_ptr<const Tokenizer> tiny() {
  TokenizerSpec spec;
  spec.pieces = {"a", "b", "c", "bc", "ab", "<s>", "Ġ", "cĠa"};
  spec.types.assign(spec.pieces.size(), TokenType::kNormal);
  spec.types[5] = TokenType::kControl;
  spec.merges = {"b c", "a b", "c Ġ"};
  spec.merges.pop_back();
  spec.bos = 5;
  spec.add_bos = true;
  return Tokenizer::create(spec);
}

TEST(TokenTree, TakesTheLongestTokenWhateverMergingGives) {
  const auto tokenizer = tiny();
  const TokenTree tree(tokenizer);
  EXPECT_EQ(tokenizer->encode("abc"), (std::vector<TokenId>{5, 0, 3}));
  EXPECT_EQ(tree.encode("abc"), (std::vector<TokenId>{5, 4, 2}));
  // Words are not cut apart.
  EXPECT_EQ(tree.encode("c a"), (std::vector<TokenId>{5, 7}));
  // A byte without a token is left out.
  EXPECT_EQ(tree.encode("axb"), (std::vector<TokenId>{5, 0, 1}));
  EncodeOptions options{.add_special = false};
  EXPECT_TRUE(tree.encode("<s>", options).empty());
  options.special.allow = SpecialTokens::Allow::kAll;
  EXPECT_EQ(tree.encode("ab<s>c", options), (std::vector<TokenId>{4, 5, 2}));
}

TEST(TokenTree, GivesBackTheBytesOfTheText) {
  for (const std::string text :
       {"Hello, world! 12", "  caf\xC3\xA9 \xE4\xB8\x80\n", "\xFF\xFE x"}) {
    for (const std::string kind : {"bpe", "spm"}) {
      const auto tokenizer =
          Tokenizer::create(kind == "spm" ? small_vocabulary("spm") : small_bpe("llama-bpe"));
      EXPECT_EQ(tokenizer->decode(TokenTree(tokenizer).encode(text, {.add_special = false})), text)
          << kind;
    }
  }
}

TEST(TokenTree, RemovesExtraSpacesWhereTheTokenizerDoes) {
  TokenizerSpec spec = small_vocabulary("spm");
  spec.remove_extra_whitespaces = true;
  const auto tokenizer = Tokenizer::create(spec);
  const TokenTree tree(tokenizer);
  EXPECT_EQ(tree.encode("  one   two "), tree.encode("one two"));
  EXPECT_EQ(tree.encode("   "), tree.encode(""));
  const std::string text = "  one   two ";
  EXPECT_EQ(tokenizer->decode(tree.encode(text)), tokenizer->decode(tokenizer->encode(text)));
}

TEST(TokenTree, TakesTheMarkOfASpaceForASpace) {
  TokenizerSpec spec = small_vocabulary("spm");
  for (const SpacePrefix prefix : {SpacePrefix::kEveryPart, SpacePrefix::kEveryPartOnce,
                                   SpacePrefix::kFirstPartOnce, SpacePrefix::kNone}) {
    spec.space_prefix = prefix;
    const auto tokenizer = Tokenizer::create(spec);
    const TokenTree tree(tokenizer);
    const std::string text = "\u2581one\u2581two";
    EXPECT_EQ(tree.encode(text), tree.encode(" one two"));
    EXPECT_EQ(tokenizer->decode(tree.encode(text)), tokenizer->decode(tokenizer->encode(text)));
  }
}

// Neither vocabulary has a piece for a space. With byte tokens it becomes the bytes of U+2581;
// without them each character becomes one unknown token.
TEST(TokenTree, TreatsCharactersWithoutAPieceAsTheTokenizerDoes) {
  TokenizerSpec spec;
  spec.kind = TokenizerKind::kSentencePieceBpe;
  spec.merge_order = MergeOrder::kScores;
  spec.pieces = {"<unk>", "a"};
  spec.types = {TokenType::kUnknown, TokenType::kNormal};
  spec.unknown = 0;
  for (const size_t n_bytes : {0, 256}) {
    for (size_t byte = 0; byte < n_bytes; ++byte) {
      spec.pieces.push_back(fmt::format("<0x{:02X}>", byte));
      spec.types.push_back(TokenType::kByte);
    }
    spec.scores.assign(spec.pieces.size(), 0);
    const auto tokenizer = Tokenizer::create(spec);
    const std::string text = "a\u00e9 \xFF\u2581a";
    EXPECT_EQ(TokenTree(tokenizer).encode(text), tokenizer->encode(text));
  }
}

TEST(TokenDisagreement, CountsTokensThatAreNotAtTheSamePlace) {
  const auto tokenizer = tiny();
  const auto count = [&](std::vector<TokenId> exact, std::vector<TokenId> other) {
    return disagreement(*tokenizer, exact, other).n_differing;
  };
  EXPECT_EQ(count({0, 3, 1}, {0, 3, 1}), 0U);
  EXPECT_EQ(count({0, 3, 1}, {4, 2, 1}), 2U);  // a|bc|b, ab|c|b
  EXPECT_EQ(count({0, 1, 2}, {0, 3}), 2U);     // a|b|c, a|bc
  EXPECT_EQ(count({0, 3}, {0, 1, 2}), 1U);     // a|bc, a|b|c
  EXPECT_EQ(count({}, {}), 0U);
  EXPECT_EQ(count({0}, {}), 1U);
}

}  // namespace
}  // namespace limpid
