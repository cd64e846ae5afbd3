#include "tokenizer/pre_tokenizer.h"

#include <algorithm>
#include <initializer_list>

namespace limpid {
namespace {

using enum PreTokenizer;

// A rule, and the names that files give it. llama.cpp has a name for each family of models, so
// several names can mean the same.
struct NamedRule {
  PreTokenizerRule rule;
  std::initializer_list<std::string_view> names;
};

const NamedRule kRules[] = {
    {{.pre_tokenizer = kGpt2}, {"gpt-2", "phi-2"}},
    {{.pre_tokenizer = kDigitsGpt2}, {"smollm", "starcoder", "refact", "codeshell"}},
    {{.pre_tokenizer = kLlama3, .ignore_merges = true, .add_bos = true},
     {"llama-bpe", "llama3", "llama-v3"}},
    {{.pre_tokenizer = kLlama3}, {"dbrx", "chatglm-bpe", "glm4"}},
    {{.pre_tokenizer = kQwen2, .normalize_nfc = true}, {"qwen2"}},
    {{.pre_tokenizer = kQwen2},
     {"deepseek-r1-qwen", "stablelm2", "hunyuan", "grok-2", "solar-open", "bailingmoe",
      "bailingmoe2", "llada-moe"}},
    {{.pre_tokenizer = kQwen35, .normalize_nfc = true}, {"qwen35"}},
    {{.pre_tokenizer = kSeedCoder}, {"seed-coder"}},
    {{.pre_tokenizer = kGpt4o}, {"gpt-4o", "llama4"}},
    {{.pre_tokenizer = kTekken, .ignore_merges = true, .add_bos = true}, {"tekken"}},
    {{.pre_tokenizer = kDeepSeekV3}, {"deepseek-v3", "hunyuan-dense", "joyai-llm"}},
    {{.pre_tokenizer = kDeepSeekCoder}, {"deepseek-coder"}},
    {{.pre_tokenizer = kBloom}, {"bloom", "poro-chat", "gpt3-finnish"}},
    {{.pre_tokenizer = kViking}, {"viking"}},
};

}  // namespace

const PreTokenizerRule* find_pre_tokenizer(std::string_view name) {
  for (const auto& [rule, names] : kRules) {
    if (std::ranges::find(names, name) != names.end()) return &rule;
  }
  return nullptr;
}

std::vector<std::string_view> pre_tokenizer_names() {
  std::vector<std::string_view> all;
  for (const auto& [rule, names] : kRules) all.insert(all.end(), names.begin(), names.end());
  return all;
}

#define LIMPID_CONTRACTIONS "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define LIMPID_SPACES R"(\s*[\r\n]+|\s+(?!\S)|\s+)"
#define LIMPID_UPPER R"([\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])"
#define LIMPID_LOWER R"([\p{Ll}\p{Lm}\p{Lo}\p{M}])"
#define LIMPID_O200K(contraction, numbers)                                           \
  R"([^\r\n\p{L}\p{N}]?)" LIMPID_UPPER "*" LIMPID_LOWER "+" contraction              \
  R"(|[^\r\n\p{L}\p{N}]?)" LIMPID_UPPER "+" LIMPID_LOWER "*" contraction "|" numbers \
  R"(| ?[^\s\p{L}\p{N}]+[\r\n/]*|)" LIMPID_SPACES

constexpr const char* kByteLevelPattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

namespace {

constexpr std::string_view kNumeric;  // represents the step kNumeric, one character each

constexpr const char* kBloomPattern = R"( ?[^(\s|[.,!?…。，、।۔،])]+)";  // a set within the set
constexpr const char* kFlatBloomPattern = R"( ?[^(\s|.,!?…。，、।۔،)]+)";

// A scanner, and the regular expressions that mean the same. Files spell them in slightly different
// ways, so a scanner can have several entries.
struct KnownSplits {
  PreTokenizer scanner;
  bool covers_all;  // the last expression matches at every place of a text
  std::initializer_list<std::string_view> patterns;
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
  const auto is_same = [&](const SplitStep& step, std::string_view pattern) {
    return !step.contiguous && (!step.drop_gaps || known.covers_all) && step.pattern == pattern &&
           (step.kind == SplitStep::Kind::kNumeric) == pattern.empty();
  };
  return std::ranges::equal(steps, known.patterns, is_same);
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
  using Kind = SplitStep::Kind;
  std::vector<SplitStep> steps;
  const auto* known = std::ranges::find(kKnown, scanner, &KnownSplits::scanner);
  if (known == std::end(kKnown)) return steps;
  for (const std::string_view pattern : known->patterns)
    steps.push_back({pattern.empty() ? Kind::kNumeric : Kind::kRegex, std::string(pattern)});
  return steps;
}

}  // namespace limpid
