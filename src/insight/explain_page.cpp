#include "insight/explain_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include "base/base64.h"
#include "insight/explanation_json.h"
#include "jinja/page.h"

namespace limpid {

namespace insight {
// The files explain_page.html, explain_style.css, …, embedded. The scripts are one.
std::string_view explain_page_text();
std::string_view explain_style_text();
std::string_view explain_data_text();
std::string_view explain_tokens_text();
std::string_view explain_contrast_text();
std::string_view explain_heads_text();
}  // namespace insight

namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kMostRowNumbers = 2'000'000;  // of attention, of all heads together

// Numbers as base64 of their little-endian bytes: a quarter of their size as decimal text.
template <typename Number>
std::string packed(const std::vector<Number>& numbers) {
  return base64(std::as_bytes(std::span(numbers)));
}

// A share of 1 as a whole number; NaN is 0.
template <typename Number>
Number as_whole(double share) {
  constexpr double kWhole = std::numeric_limits<Number>::max();
  return share > 0 ? static_cast<Number>(std::lround(std::min(share, 1.0) * kWhole)) : Number{0};
}
// Weights and tiles need no more than 256 steps: a difference of 0.4 % cannot be seen.
std::string packed_bytes(std::span<const float> shares) {
  std::vector<uint8_t> bytes;
  for (const float share : shares) bytes.push_back(as_whole<uint8_t>(share));
  return packed(bytes);
}

double rounded(double value) { return std::round(value * 1e4) / 1e4; }

// The same number of tokens from each prediction. For 512 tokens and 33 layers of the lens, the two
// likeliest tokens are 34,000 ids: 180 kB here and 700 kB as a JSON list of objects.
Json pack(std::span<const Prediction> predictions, std::set<int32_t>& mentioned) {
  size_t n_best = SIZE_MAX;
  for (const Prediction& each : predictions) n_best = std::min(n_best, each.likeliest.size());
  std::vector<int32_t> ids;
  std::vector<uint16_t> chances;
  std::vector<float> entropies;
  for (const Prediction& each : predictions) {
    for (const TokenChance& chance : std::span(each.likeliest).first(n_best)) {
      ids.push_back(chance.id);
      chances.push_back(as_whole<uint16_t>(chance.probability));
      mentioned.insert(chance.id);
    }
    entropies.push_back(static_cast<float>(each.entropy));
  }
  return {
      {"n", n_best}, {"ids", packed(ids)}, {"p", packed(chances)}, {"entropy", packed(entropies)}};
}

// The parts of heads, then the rest of attention, then MLPs, in 16 bits, as shares of the largest.
Json pack(const Attribution& parts, std::set<int32_t>& mentioned) {
  std::vector<float> all = parts.heads;
  all.insert(all.end(), parts.attention_rest.begin(), parts.attention_rest.end());
  all.insert(all.end(), parts.mlps.begin(), parts.mlps.end());
  float largest = 0;
  for (const float part : all) largest = std::max(largest, std::abs(part));
  std::vector<int16_t> shares;
  for (const float part : all) {
    const float share = largest > 0 ? part / largest : 0;
    shares.push_back(std::isfinite(share) ? static_cast<int16_t>(std::lround(share * 32767)) : 0);
  }
  mentioned.insert(parts.token);
  if (parts.against >= 0) mentioned.insert(parts.against);
  return {{"at", parts.position},
          {"token", parts.token},
          {"against", parts.against},
          {"logit", parts.logit},
          {"sum", parts.sum()},
          {"embedding", rounded(parts.embedding)},
          {"bias", rounded(parts.norm_bias)},
          {"rest_of_attention",
           rounded(std::accumulate(parts.attention_rest.begin(), parts.attention_rest.end(), 0.0))},
          {"rounding", rounded(parts.rounding)},
          {"largest", largest},
          {"parts", packed(shares)}};
}

// For 512 tokens, a head that keeps five weights a row has 2,560 columns of 16 bits and as many
// weights of 8: 10 kB in base64. Texts of more than 65,536 tokens need columns of 32 bits.
template <typename Column>
Json pack_rows(const AttentionMap& map) {
  std::vector<Column> columns;
  std::vector<float> weights;
  for (int64_t t = 0; t < std::ssize(map.first()); ++t) {
    for (const AttentionMap::Kept& kept : map.row(t)) {
      columns.push_back(static_cast<Column>(std::max(kept.column, 0)));
      weights.push_back(kept.weight);  // 0 where there is none
    }
  }
  return {{"kept", map.n_kept()},
          {"first", packed_bytes(map.first())},
          {"columns", packed(columns)},
          {"weights", packed_bytes(weights)}};
}

Json pack(const AttentionMap& map) {
  const HeadHabits habits = map.habits();
  return {{"habits",
           {rounded(habits.first), rounded(habits.previous), rounded(habits.same),
            rounded(habits.after_same), rounded(habits.itself)}},
          {"n_tiles", map.n_tiles()},
          {"tiles", packed_bytes(map.tiles())}};
}

// The heads with the clearest habits have their rows in the page, as many as kMostRowNumbers allow.
// For 8,000 tokens, the rows of 1,024 heads would take 43 MB, and those of 125 take 5.
Json pack(std::span<const AttentionMap> maps) {
  Json heads = Json::array();
  std::vector<std::pair<double, size_t>> order;
  for (const AttentionMap& map : maps) {
    const HeadHabits habits = map.habits();
    order.emplace_back(-std::max({habits.previous, habits.same, habits.after_same}), heads.size());
    heads.push_back(pack(map));
  }
  std::ranges::sort(order);
  int64_t n_left = kMostRowNumbers;
  for (const auto& [habit, i] : order) {
    const int64_t n_tokens = std::ssize(maps[i].first());
    n_left -= n_tokens * (1 + maps[i].n_kept());
    if (n_left < 0) break;
    heads[i].update(n_tokens > 65'536 ? pack_rows<uint32_t>(maps[i])
                                      : pack_rows<uint16_t>(maps[i]));
  }
  return heads;
}

Json pack(const LayerNorms& norms) {
  return {{"layer", norms.layer},
          {"stream", packed(norms.stream)},
          {"attention", packed(norms.attention)},
          {"mlp", packed(norms.mlp)},
          {"outlier", {norms.outlier_feature, norms.outlier_token, rounded(norms.outlier)}},
          {"dead", norms.n_dead},
          {"quiet", norms.n_quiet},
          {"quiet_first", norms.quiet}};
}

std::string packed_floats(const std::vector<double>& numbers) {
  return packed(std::vector<float>(numbers.begin(), numbers.end()));
}

// The changes after token t end at ends[t], where those of the next one begin.
Json pack(const ShownContrast& shown, std::set<int32_t>& mentioned) {
  const Contrast& contrast = shown.contrast;
  std::vector<uint32_t> ends;
  std::vector<int32_t> ids;
  std::vector<uint16_t> before;
  std::vector<uint16_t> after;
  for (const auto& changes : contrast.changes) {
    for (const Contrast::Change& change : changes) {
      ids.push_back(change.id);
      before.push_back(as_whole<uint16_t>(change.before));
      after.push_back(as_whole<uint16_t>(change.after));
      mentioned.insert(change.id);
    }
    ends.push_back(static_cast<uint32_t>(ids.size()));
  }
  return {{"title", shown.title},
          {"first_layer", contrast.first_layer()},
          {"distance", contrast.distance},
          {"token_distance", packed_floats(contrast.token_distance)},
          {"divergence", packed_floats(contrast.divergence)},
          {"surprise", packed_floats(contrast.surprise[1])},
          {"mean_divergence", contrast.mean_divergence()},
          {"mean_surprise", {contrast.mean_surprise(0), contrast.mean_surprise(1)}},
          {"ends", packed(ends)},
          {"ids", packed(ids)},
          {"before", packed(before)},
          {"after", packed(after)}};
}

// Tokens are ids throughout. Each text is there once, under "texts", and only for the ids that
// the page mentions: the vocabulary itself has megabytes.
Json page_data(const Explanation& explanation, const PageFacts& facts,
               std::span<const ShownContrast> contrasts, const Tokenizer* tokenizer) {
  std::set<int32_t> mentioned(explanation.token_ids.begin(), explanation.token_ids.end());
  const auto pack_naming = [&](const auto& each) { return pack(each, mentioned); };
  const auto pack_lens = [&](const LensLayer& lens) {
    Json json = pack(lens.predictions, mentioned);
    json["layer"] = lens.layer;
    return json;
  };
  const auto pack_norms = [](const LayerNorms& norms) { return pack(norms); };
  Json data = {{"model", facts.model},
               {"description", facts.description},
               {"n_prompt", explanation.n_prompt},
               {"n_layers", explanation.n_layers},
               {"n_heads", explanation.n_heads},
               {"ids", explanation.token_ids},
               {"surprise", list_of(explanation.surprise, rounded)},  // null for NaN
               {"next", pack(explanation.next, mentioned)},
               {"lens", list_of(explanation.lens, pack_lens)},
               {"parts", list_of(explanation.parts, pack_naming)},
               {"attention", pack(explanation.attention)},
               {"norms", list_of(explanation.norms, pack_norms)},
               {"times", times_to_json(facts.times)},
               {"limits", facts.limits},
               {"weight_bytes", facts.n_weight_bytes},
               {"cache_bytes", facts.n_cache_bytes},
               {"contrasts", list_of(contrasts, pack_naming)}};
  Json& texts = data["texts"] = Json::object();
  for (const int32_t id : mentioned) texts[std::to_string(id)] = token_text(tokenizer, id);
  return data;
}

// `values` are the variables of the page; `data` is JSON, or empty for a page that waits for it.
std::string render(const Json& values, std::string data) {
  const std::string script =
      std::string(insight::explain_data_text()) + std::string(insight::explain_tokens_text()) +
      std::string(insight::explain_contrast_text()) + std::string(insight::explain_heads_text());
  return render_page(insight::explain_page_text(), values, {{"data", std::move(data)}},
                     {.style = std::string(insight::explain_style_text()), .script = script});
}

}  // namespace

std::string explain_page(const Explanation& explanation, const PageFacts& facts,
                         std::span<const ShownContrast> contrasts, const Tokenizer* tokenizer) {
  return render({{"model", facts.model},
                 {"description", facts.description},
                 {"n_tokens", explanation.token_ids.size()},
                 {"n_answer", std::ssize(explanation.token_ids) - explanation.n_prompt},
                 {"has_contrast", !contrasts.empty()},
                 {"has_times", !facts.times.empty()}},
                script_json(page_data(explanation, facts, contrasts, tokenizer)));
}

std::string explain_frame() {
  return render({{"model", "the model"},
                 {"description", ""},
                 {"n_tokens", 0},
                 {"n_answer", 0},
                 {"has_contrast", false},
                 {"has_times", false}},
                "");
}

std::string explain_data(const Explanation& explanation, const PageFacts& facts,
                         const Tokenizer* tokenizer) {
  return script_json(page_data(explanation, facts, {}, tokenizer));
}

std::string describe_model(const DecoderSpec& spec) {
  return fmt::format("{}, {} layers of {} heads, {} features", spec.architecture, spec.n_layers,
                     spec.n_heads, spec.d_model);
}

}  // namespace limpid
