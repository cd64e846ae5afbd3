#include "tokenizer/known_splits.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace limpid {

#define LIMPID_CONTRACTIONS "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define LIMPID_SPACES R"(\s*[\r\n]+|\s+(?!\S)|\s+)"
#define LIMPID_UPPER R"([\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])"
#define LIMPID_LOWER R"([\p{Ll}\p{Lm}\p{Lo}\p{M}])"
#define LIMPID_O200K(contraction, numbers)                                           \
  R"([^\r\n\p{L}\p{N}]?)" LIMPID_UPPER "*" LIMPID_LOWER "+" contraction              \
  R"(|[^\r\n\p{L}\p{N}]?)" LIMPID_UPPER "+" LIMPID_LOWER "*" contraction "|" numbers \
  R"(| ?[^\s\p{L}\p{N}]+[\r\n/]*|)" LIMPID_SPACES

const char* const kByteLevelPattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

namespace {

constexpr const char* kNumeric = "";  // represents the step kNumeric, one character each

constexpr const char* kBloom = R"( ?[^(\s|[.,!?…。，、।۔،])]+)";  // a set within the set
constexpr const char* kFlatBloom = R"( ?[^(\s|.,!?…。，、।۔،)]+)";

// A scanner, and the regular expressions that mean the same. Files spell them in slightly different
// ways, so a scanner can have several entries.
struct KnownSplits {
  PreTokenizer scanner;
  bool covers_all;                      // the last expression matches at every place of a text
  std::array<const char*, 5> patterns;  // up to the first nullptr
};

// clang-format off
const KnownSplits kKnown[] = {
    {PreTokenizer::kGpt2, true, {kByteLevelPattern}},
    {PreTokenizer::kDigitsGpt2, true, {kNumeric, kByteLevelPattern}},
    {PreTokenizer::kLlama3, true,
     {LIMPID_CONTRACTIONS R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|)" LIMPID_SPACES}},
    {PreTokenizer::kQwen2, true,
     {LIMPID_CONTRACTIONS R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|)" LIMPID_SPACES}},
    {PreTokenizer::kQwen2, true,
     {R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+)"}},
    {PreTokenizer::kQwen35, true,
     {LIMPID_CONTRACTIONS R"(|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|)" LIMPID_SPACES}},
    {PreTokenizer::kSeedCoder, true,
     {LIMPID_CONTRACTIONS R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|)" LIMPID_SPACES}},
    {PreTokenizer::kGpt4o, true, {LIMPID_O200K(LIMPID_CONTRACTIONS "?", R"(\p{N}{1,3})")}},
    {PreTokenizer::kTekken, true, {LIMPID_O200K("", R"(\p{N})")}},
    {PreTokenizer::kDeepSeekV3, false,
     {R"(\p{N}{1,3})", "[一-龥\u3040-ゟ゠-ヿ]+",
      R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|)"
      LIMPID_SPACES}},
    {PreTokenizer::kDeepSeekCoder, false,
     {"[\r\n]", R"(\s?\p{L}+)", R"(\s?\p{P}+)", "[一-龥ࠀ-一가-\xED\x9F\xBF]+", kNumeric}},
    {PreTokenizer::kBloom, false, {kBloom}},
    {PreTokenizer::kBloom, false, {kFlatBloom}},
    {PreTokenizer::kViking, false, {kBloom, R"(\p{N})"}},
    {PreTokenizer::kViking, false, {kFlatBloom, R"(\p{N})"}},
};
// clang-format on

bool matches(const KnownSplits& known, const std::vector<SplitStep>& steps) {
  const auto last = std::find(known.patterns.begin(), known.patterns.end(), nullptr);
  if (static_cast<size_t>(last - known.patterns.begin()) != steps.size()) return false;
  for (size_t i = 0; i < steps.size(); ++i) {
    const SplitStep& step = steps[i];
    const std::string_view pattern = known.patterns[i];
    if (step.contiguous || (step.drop_gaps && !known.covers_all)) return false;
    if (step.kind == SplitStep::Kind::kNumeric ? !pattern.empty()
                                               : pattern.empty() || step.pattern != pattern)
      return false;
  }
  return true;
}

}  // namespace

std::optional<PreTokenizer> find_scanner(const std::vector<SplitStep>& steps) {
  if (steps.empty()) return PreTokenizer::kNone;
  for (const KnownSplits& known : kKnown) {
    if (matches(known, steps)) return known.scanner;
  }
  return std::nullopt;
}

std::vector<SplitStep> find_splits(PreTokenizer scanner) {
  std::vector<SplitStep> steps;
  for (const KnownSplits& known : kKnown) {
    if (known.scanner != scanner) continue;
    for (const char* pattern : known.patterns) {
      if (pattern == nullptr) break;
      SplitStep& step = steps.emplace_back();
      step.kind = *pattern == '\0' ? SplitStep::Kind::kNumeric : SplitStep::Kind::kRegex;
      step.pattern = pattern;
    }
    break;
  }
  return steps;
}

}  // namespace limpid
