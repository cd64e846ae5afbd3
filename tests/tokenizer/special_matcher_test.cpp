// Special tokens in texts, against the definition: at each place the longest name that may match.
#include "tokenizer/special_matcher.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>
#include <string>

#include "tokenizer/tokenizer.h"

namespace limpid {
namespace {

using Parts = std::vector<std::pair<TokenId, std::string>>;  // -1 and a stretch, or a token
using MayHold = std::function<bool(size_t)>;
using Allow = SpecialTokens::Allow;

bool may_match(const TokenizerSpec& spec, const SpecialTokens& allowed, TokenId id) {
  if (spec.types[static_cast<size_t>(id)] == TokenType::kUserDefined) return true;
  if (allowed.allow != Allow::kList) return allowed.allow == Allow::kAll;
  return std::count(allowed.list.begin(), allowed.list.end(), id) != 0;
}

// Of names that begin at one place the longest wins, of tokens of one name the user-defined one.
Parts parts_by_definition(const TokenizerSpec& spec, const std::string& text,
                          const SpecialTokens& allowed, const MayHold& may_hold) {
  Parts parts;
  std::string stretch;
  const auto flush = [&] {
    if (!stretch.empty()) parts.emplace_back(-1, stretch);
    stretch.clear();
  };
  for (size_t at = 0; at < text.size();) {
    TokenId best = -1;
    const auto rank = [&](TokenId id) {
      const auto index = static_cast<size_t>(id);
      return std::pair(spec.pieces[index].size(), spec.types[index] == TokenType::kUserDefined);
    };
    for (TokenId id = 0; id < static_cast<TokenId>(spec.pieces.size()); ++id) {
      const std::string& name = spec.pieces[static_cast<size_t>(id)];
      bool fits = text.compare(at, name.size(), name) == 0 && may_match(spec, allowed, id);
      for (size_t i = at; fits && i < at + name.size(); ++i) fits = may_hold(i);
      if (fits && (best < 0 || rank(id) > rank(best))) best = id;
    }
    if (best < 0) {
      stretch += text[at++];
      continue;
    }
    flush();
    parts.emplace_back(best, "");
    at += spec.pieces[static_cast<size_t>(best)].size();
  }
  flush();
  return parts;
}

Parts parts_of(const SpecialMatcher& matcher, const std::string& text, const SpecialTokens& allowed,
               const MayHold& may_hold) {
  Parts parts;
  SpecialMatcher::Work work;
  size_t from = 0;
  const auto add_text = [&](size_t to) {
    if (to > from) parts.emplace_back(-1, text.substr(from, to - from));
  };
  matcher.for_each_match(text, allowed, may_hold, work, [&](TokenId id, size_t begin, size_t end) {
    add_text(begin);
    parts.emplace_back(id, "");
    from = end;
  });
  add_text(text.size());
  return parts;
}

struct Random {
  std::mt19937 engine{1};
  size_t below(size_t n) { return engine() % n; }
  std::string letters(size_t size, size_t n_letters) {
    std::string text;
    while (text.size() < size) text += static_cast<char>('a' + below(n_letters));
    return text;
  }
};

// Names are all different, so which token of a name is meant is known.
TokenizerSpec random_names(Random& random, size_t n_letters, size_t longest) {
  TokenizerSpec spec;
  for (size_t n = 1 + random.below(12); n > 0; --n) {
    const std::string name = random.letters(1 + random.below(longest), n_letters);
    if (std::count(spec.pieces.begin(), spec.pieces.end(), name) != 0) continue;
    spec.pieces.push_back(name);
    spec.types.push_back(random.below(3) == 0 ? TokenType::kUserDefined : TokenType::kControl);
  }
  return spec;
}

SpecialTokens random_permission(Random& random, const TokenizerSpec& spec) {
  SpecialTokens allowed;
  allowed.allow = std::array{Allow::kNone, Allow::kAll, Allow::kList}[random.below(3)];
  for (TokenId id = 0; id < static_cast<TokenId>(spec.pieces.size()); ++id)
    if (random.below(2) == 0) allowed.list.push_back(id);
  return allowed;
}

TEST(SpecialMatcher, FindsTheLongestNameAtTheLeftmostPlace) {
  Random random;
  for (int trial = 0; trial < 4000; ++trial) {
    const size_t n_letters = 1 + random.below(3);
    const TokenizerSpec spec = random_names(random, n_letters, 6);
    const SpecialMatcher matcher(spec, SpecialMatcher::Names::kPlain);
    const std::string text = random.letters(random.below(40), n_letters);
    const SpecialTokens allowed = random_permission(random, spec);
    std::string mask;
    for (size_t i = 0; i < text.size(); ++i) mask += random.below(8) == 0 ? '0' : '1';
    for (const MayHold& may_hold :
         {MayHold([](size_t) { return true; }), MayHold([&](size_t i) { return mask[i] == '1'; })})
      ASSERT_EQ(parts_of(matcher, text, allowed, may_hold),
                parts_by_definition(spec, text, allowed, may_hold))
          << text << ' ' << mask;
  }
}

TEST(SpecialMatcher, FindsNamesAcrossItsWindows) {
  Random random;
  for (const size_t longest : {5, 70'000}) {
    TokenizerSpec spec;
    spec.pieces = {"ab", "abbab", "bb", std::string(longest, 'a') + "b"};
    spec.types.assign(4, TokenType::kControl);
    SpecialTokens allowed;
    allowed.allow = Allow::kAll;
    std::string text = random.letters(140'000, 2);
    text += std::string(2 * longest, 'a') + "b" + random.letters(1000, 2);
    const SpecialMatcher matcher(spec, SpecialMatcher::Names::kPlain);
    const MayHold everywhere = [](size_t) { return true; };
    EXPECT_TRUE(parts_of(matcher, text, allowed, everywhere) ==
                parts_by_definition(spec, text, allowed, everywhere))
        << longest;
  }
}

// A name that is not allowed hides none that is.
TEST(SpecialMatcher, AListAllowsTheShorterName) {
  TokenizerSpec spec;
  spec.pieces = {"<a", "<a>", "<a>>"};
  spec.types.assign(3, TokenType::kControl);
  const SpecialMatcher matcher(spec, SpecialMatcher::Names::kPlain);
  SpecialTokens allowed;
  allowed.allow = Allow::kList;
  allowed.list = {0};
  EXPECT_EQ(parts_of(matcher, "<a>>", allowed, [](size_t) { return true; }),
            (Parts{{0, ""}, {-1, ">>"}}));
  EXPECT_EQ(matcher.find_disallowed("x<a>>", allowed), std::optional<TokenId>(1));
  allowed.list = {0, 1};
  EXPECT_EQ(matcher.find_disallowed("<a>", allowed), std::nullopt);
}

}  // namespace
}  // namespace limpid
