// Surprise is -log2 of the probability that the model gave to the token that came: 0 bits for what
// it knew, 10 bits for a token that it gave one chance in 1,024. A report may look like this:
//
//   place  surprise  token            expected in its place
//       0            "The"
//       1      8.21  " capital"       " first" 4 %, " world" 2 %, " best" 2 %
//       …
//       5            (next)           " Paris" 62 %, " the" 11 %, " a" 3 %
//
// A head's habit is the share of its attention that goes to one kind of place, as a mean over the
// tokens. Shares below 5 % are not listed: nearly every head has some attention for every place.
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "cli/explain.h"
#include "cli/terminal_text.h"
#include "insight/explanation_json.h"

namespace limpid::cli {
namespace {

constexpr size_t kMostTokens = 64;  // that are listed, the last ones
constexpr int64_t kMostHeads = 4;   // of a habit
constexpr size_t kMostParts = 10;
constexpr double kClearHabit = 0.05;

std::string quoted(const Tokenizer* tokenizer, int32_t id) {
  return in_quotes(token_bytes(tokenizer, id));
}

// At most `n` of the items, from the first on.
template <typename T>
std::span<const T> first(const std::vector<T>& items, size_t n) {
  return std::span(items).first(std::min(n, items.size()));
}

// "L3.H5" for the `i`-th head, counted through all layers.
std::string head_name(const Explanation& explanation, int64_t i) {
  return fmt::format("L{}.H{}", i / explanation.n_heads, i % explanation.n_heads);
}

std::string likeliest_text(const Prediction& prediction, const Tokenizer* tokenizer) {
  std::vector<std::string> texts;
  for (const TokenChance& chance : first(prediction.likeliest, 3))
    texts.push_back(
        fmt::format("{} {:.0f} %", quoted(tokenizer, chance.id), 100 * chance.probability));
  return fmt::format("{}", fmt::join(texts, ", "));
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
    Ranking heads(kMostHeads);
    for (int64_t i = 0; i < std::ssize(explanation.attention); ++i)
      heads.offer(static_cast<float>(explanation.attention[size_of(i)].habits().*habit), i);
    std::string line;
    for (const auto& [share, i] : heads.kept()) {
      if (share < kClearHabit) continue;
      line += fmt::format("  {} {:.2f}", head_name(explanation, i), share);
    }
    text += fmt::format("  {:<42}{}\n", name, line.empty() ? "  none" : line);
  }
  return text;
}

std::string parts_text(const Explanation& explanation, const Tokenizer* tokenizer) {
  if (explanation.parts.empty()) return {};
  const Attribution& last = explanation.parts.back();
  std::vector<std::pair<std::string, double>> parts = {{"embedding", last.embedding}};
  for (const float part : last.heads)
    parts.emplace_back(head_name(explanation, std::ssize(parts) - 1), part);
  for (size_t i = 0; i < last.mlps.size(); ++i)
    parts.emplace_back(fmt::format("L{}.mlp", i), last.mlps[i]);
  std::ranges::stable_sort(parts, std::ranges::greater(),
                           [](const auto& part) { return std::abs(part.second); });
  const std::string minus =
      last.against < 0 ? "" : fmt::format(" minus that of {}", quoted(tokenizer, last.against));
  std::string text =
      fmt::format("\nthe logit of {}{} after the last token is {:.4f}, the sum of\n ",
                  quoted(tokenizer, last.token), minus, last.logit);
  for (size_t i = 0; i < std::min(parts.size(), kMostParts); ++i)
    text += fmt::format(" {} {:+.2f}", parts[i].first, parts[i].second);
  return text + fmt::format(" and smaller parts: {:.4f}\n", last.sum());
}

// The five largest after the last token that can be seen.
std::string changes_text(const Contrast& contrast, const Tokenizer* tokenizer) {
  std::vector<std::string> changes;
  for (const Contrast::Change& change : first(contrast.changes.back(), 5)) {
    if (std::abs(change.after - change.before) < kLeastShownChange) break;
    changes.push_back(fmt::format(" {} {:.1f} -> {:.1f} %", quoted(tokenizer, change.id),
                                  100 * change.before, 100 * change.after));
  }
  if (!changes.empty()) return fmt::format("{}", fmt::join(changes, ","));
  return std::isnan(contrast.divergence.back()) ? " probabilities that are not numbers"
                                                : " no probability changes by 0.05 % or more";
}

std::string contrast_text(const ShownContrast& shown, int64_t n_layers,
                          const Tokenizer* tokenizer) {
  const Contrast& contrast = shown.contrast;
  std::string text = fmt::format("\n{}: ", shown.title);
  if (!contrast.distance.empty()) {
    const int64_t first = contrast.first_layer();
    text += first < 0           ? "the runs first differ at the embedding"
            : first >= n_layers ? "the layers do not differ"
                                : fmt::format("the runs first differ in layer {}", first);
    text += "; ";
  }
  return text + fmt::format(
                    "mean surprise {:.3f} -> {:.3f} bits a token, mean divergence {:.3f} "
                    "bits\n  after the last token:{}\n",
                    contrast.mean_surprise(0), contrast.mean_surprise(1),
                    contrast.mean_divergence(), changes_text(contrast, tokenizer));
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
