#include "cli/explain_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "insight/explanation_json.h"

namespace limpid::cli {
namespace {

constexpr size_t kMostTokens = 64;  // that are listed, the last ones
constexpr size_t kMostHeads = 4;    // of a habit
constexpr size_t kMostParts = 10;
constexpr double kClearHabit = 0.05;

// In quotes, on one line.
std::string quoted(const Tokenizer* tokenizer, int32_t id) {
  std::string text = "\"";
  for (const char c : token_text(tokenizer, id)) {
    if (c == '\n') {
      text += "\\n";
    } else {
      text += c;
    }
  }
  return text + '"';
}

std::string likeliest_text(const Prediction& prediction, const Tokenizer* tokenizer) {
  std::string text;
  for (const TokenChance& chance :
       std::span(prediction.likeliest).first(std::min<size_t>(3, prediction.likeliest.size()))) {
    text += fmt::format("{}{} {:.0f} %", text.empty() ? "" : ", ", quoted(tokenizer, chance.id),
                        100 * chance.probability);
  }
  return text;
}

std::string tokens_text(const Explanation& explanation, const Tokenizer* tokenizer) {
  std::string text = fmt::format("{:>5}  {:>8}  {:<16} {}\n", "place", "surprise", "token",
                                 "expected in its place");
  const size_t n = explanation.token_ids.size();
  for (size_t t = n > kMostTokens ? n - kMostTokens : 0; t <= n; ++t) {
    const bool is_end = t == n;
    text += fmt::format("{:>5}  {:>8}  {:<16} {}\n", t,
                        is_end || t == 0 ? "" : fmt::format("{:.2f}", explanation.surprise[t]),
                        is_end ? "(next)" : quoted(tokenizer, explanation.token_ids[t]),
                        t == 0 ? "" : likeliest_text(explanation.next[t - 1], tokenizer));
  }
  return text;
}

std::string heads_text(const Explanation& explanation) {
  constexpr std::pair<const char*, double HeadHabits::*> kHabits[] = {
      {"the first token (sink)", &HeadHabits::first},
      {"the token before", &HeadHabits::previous},
      {"an earlier copy of the same token", &HeadHabits::same},
      {"the token behind such a copy (induction)", &HeadHabits::after_same}};
  std::string text = "\nheads that look at\n";
  for (const auto& [name, habit] : kHabits) {
    std::vector<std::pair<double, size_t>> heads;
    for (size_t i = 0; i < explanation.attention.size(); ++i)
      heads.emplace_back(explanation.attention[i].habits().*habit, i);
    std::ranges::stable_sort(heads, std::ranges::greater(), &std::pair<double, size_t>::first);
    heads.resize(std::min(heads.size(), kMostHeads));
    std::string line;
    for (const auto& [share, i] : heads) {
      if (share < kClearHabit) continue;
      const auto n_heads = static_cast<size_t>(explanation.n_heads);
      line += fmt::format("  L{}.H{} {:.2f}", i / n_heads, i % n_heads, share);
    }
    text += fmt::format("  {:<42}{}\n", name, line.empty() ? "  none" : line);
  }
  return text;
}

std::string parts_text(const Explanation& explanation, const Tokenizer* tokenizer) {
  if (explanation.parts.empty()) return {};
  const Attribution& last = explanation.parts.back();
  std::vector<std::pair<std::string, double>> parts = {{"embedding", last.embedding}};
  const auto n_heads = static_cast<size_t>(explanation.n_heads);
  for (size_t i = 0; i < last.heads.size(); ++i)
    parts.emplace_back(fmt::format("L{}.H{}", i / n_heads, i % n_heads), last.heads[i]);
  for (size_t i = 0; i < last.mlps.size(); ++i)
    parts.emplace_back(fmt::format("L{}.mlp", i), last.mlps[i]);
  std::ranges::stable_sort(parts, std::ranges::greater(),
                           [](const auto& part) { return std::abs(part.second); });
  std::string text = fmt::format("\nthe logit of {} after the last token is {:.4f}, the sum of\n ",
                                 quoted(tokenizer, last.token), last.logit);
  for (size_t i = 0; i < std::min(parts.size(), kMostParts); ++i)
    text += fmt::format(" {} {:+.2f}", parts[i].first, parts[i].second);
  return text + fmt::format(" and smaller parts: {:.4f}\n", last.sum());
}

std::string contrast_text(const ShownContrast& shown, int64_t n_layers,
                          const Tokenizer* tokenizer) {
  const Contrast& contrast = shown.contrast;
  std::string text = fmt::format("\n{}: ", shown.title);
  if (!contrast.distance.empty()) {
    const int64_t first = contrast.first_layer();
    text += first < 0           ? "the runs part at the embedding"
            : first >= n_layers ? "the layers do not differ"
                                : fmt::format("the runs part in layer {}", first);
    text += "; ";
  }
  text += fmt::format("mean surprise {:.3f} -> {:.3f} bits a token\n  after the last token:",
                      contrast.mean_surprise(0), contrast.mean_surprise(1));
  for (const Contrast::Change& change :
       std::span(contrast.changes).first(std::min<size_t>(5, contrast.changes.size()))) {
    text +=
        fmt::format(" {} {:.1f} -> {:.1f} %{}", quoted(tokenizer, change.id), 100 * change.before,
                    100 * change.after, &change == &contrast.changes.back() ? "" : ",");
  }
  if (text.ends_with(',')) text.pop_back();
  return text + "\n";
}

}  // namespace

std::string explain_report(const Explanation& explanation, std::span<const ShownContrast> contrasts,
                           const Tokenizer* tokenizer) {
  std::string text = tokens_text(explanation, tokenizer) + heads_text(explanation) +
                     parts_text(explanation, tokenizer);
  for (const ShownContrast& shown : contrasts)
    text += contrast_text(shown, explanation.n_layers, tokenizer);
  return text;
}

}  // namespace limpid::cli
