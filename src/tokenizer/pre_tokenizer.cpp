#include "tokenizer/pre_tokenizer.h"

#include <algorithm>
#include <array>

namespace limpid {
namespace {

using enum PreTokenizer;

constexpr PreTokenizerRule kRules[] = {
    {.name = "gpt-2", .pre_tokenizer = kGpt2},
    {.name = "phi-2", .pre_tokenizer = kGpt2},
    {.name = "smollm", .pre_tokenizer = kDigitsGpt2},
    {.name = "starcoder", .pre_tokenizer = kDigitsGpt2},
    {.name = "refact", .pre_tokenizer = kDigitsGpt2},
    {.name = "codeshell", .pre_tokenizer = kDigitsGpt2},
    {.name = "llama-bpe", .pre_tokenizer = kLlama3, .ignore_merges = true, .add_bos = true},
    {.name = "llama3", .pre_tokenizer = kLlama3, .ignore_merges = true, .add_bos = true},
    {.name = "llama-v3", .pre_tokenizer = kLlama3, .ignore_merges = true, .add_bos = true},
    {.name = "dbrx", .pre_tokenizer = kLlama3},
    {.name = "chatglm-bpe", .pre_tokenizer = kLlama3},
    {.name = "glm4", .pre_tokenizer = kLlama3},
    {.name = "qwen2", .pre_tokenizer = kQwen2, .normalize_nfc = true},
    {.name = "deepseek-r1-qwen", .pre_tokenizer = kQwen2},
    {.name = "stablelm2", .pre_tokenizer = kQwen2},
    {.name = "hunyuan", .pre_tokenizer = kQwen2},
    {.name = "grok-2", .pre_tokenizer = kQwen2},
    {.name = "solar-open", .pre_tokenizer = kQwen2},
    {.name = "bailingmoe", .pre_tokenizer = kQwen2},
    {.name = "bailingmoe2", .pre_tokenizer = kQwen2},
    {.name = "llada-moe", .pre_tokenizer = kQwen2},
    {.name = "qwen35", .pre_tokenizer = kQwen35, .normalize_nfc = true},
    {.name = "seed-coder", .pre_tokenizer = kSeedCoder},
    {.name = "gpt-4o", .pre_tokenizer = kGpt4o},
    {.name = "llama4", .pre_tokenizer = kGpt4o},
    {.name = "tekken", .pre_tokenizer = kTekken, .ignore_merges = true, .add_bos = true},
    {.name = "deepseek-v3", .pre_tokenizer = kDeepSeekV3},
    {.name = "hunyuan-dense", .pre_tokenizer = kDeepSeekV3},
    {.name = "joyai-llm", .pre_tokenizer = kDeepSeekV3},
    {.name = "deepseek-coder", .pre_tokenizer = kDeepSeekCoder},
    {.name = "bloom", .pre_tokenizer = kBloom},
    {.name = "poro-chat", .pre_tokenizer = kBloom},
    {.name = "gpt3-finnish", .pre_tokenizer = kBloom},
    {.name = "viking", .pre_tokenizer = kViking},
};

}  // namespace

const PreTokenizerRule* find_pre_tokenizer(std::string_view name) {
  for (const PreTokenizerRule& rule : kRules) {
    if (rule.name == name) return &rule;
  }
  return nullptr;
}

std::vector<std::string_view> pre_tokenizer_names() {
  std::vector<std::string_view> names;
  for (const PreTokenizerRule& rule : kRules) names.push_back(rule.name);
  return names;
}

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

constexpr const char* kBloomPattern = R"( ?[^(\s|[.,!?…。，、।۔،])]+)";  // a set within the set
constexpr const char* kFlatBloomPattern = R"( ?[^(\s|.,!?…。，、।۔،)]+)";

// A scanner, and the regular expressions that mean the same. Files spell them in slightly different
// ways, so a scanner can have several entries.
struct KnownSplits {
  PreTokenizer scanner;
  bool covers_all;                      // the last expression matches at every place of a text
  std::array<const char*, 5> patterns;  // up to the first nullptr
};

// clang-format off
const KnownSplits kKnown[] = {
    {kGpt2, true, {kByteLevelPattern}},
    {kDigitsGpt2, true, {kNumeric, kByteLevelPattern}},
    {kLlama3, true,
     {LIMPID_CONTRACTIONS R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|)" LIMPID_SPACES}},
    {kQwen2, true,
     {LIMPID_CONTRACTIONS R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|)" LIMPID_SPACES}},
    {kQwen2, true,
     {R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+)"}},
    {kQwen35, true,
     {LIMPID_CONTRACTIONS R"(|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|)" LIMPID_SPACES}},
    {kSeedCoder, true,
     {LIMPID_CONTRACTIONS R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|)" LIMPID_SPACES}},
    {kGpt4o, true, {LIMPID_O200K(LIMPID_CONTRACTIONS "?", R"(\p{N}{1,3})")}},
    {kTekken, true, {LIMPID_O200K("", R"(\p{N})")}},
    {kDeepSeekV3, false,
     {R"(\p{N}{1,3})", "[一-龥\u3040-ゟ゠-ヿ]+",
      R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|)"
      LIMPID_SPACES}},
    {kDeepSeekCoder, false,
     {"[\r\n]", R"(\s?\p{L}+)", R"(\s?\p{P}+)", "[一-龥ࠀ-一가-\xED\x9F\xBF]+", kNumeric}},
    {kBloom, false, {kBloomPattern}},
    {kBloom, false, {kFlatBloomPattern}},
    {kViking, false, {kBloomPattern, R"(\p{N})"}},
    {kViking, false, {kFlatBloomPattern, R"(\p{N})"}},
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

bool has_scanner(PreTokenizer pre_tokenizer) {
  return pre_tokenizer != kDeepSeekCoder && pre_tokenizer != kBloom && pre_tokenizer != kViking;
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
