#include "tokenizer/pre_tokenizer.h"

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

}  // namespace limpid
