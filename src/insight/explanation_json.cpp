#include "insight/explanation_json.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/printable.h"

namespace limpid {
namespace {

using Json = nlohmann::ordered_json;

// As OpenAI's log-probabilities do, "bytes" has a list of numbers. It is there where the text does
// not say what the bytes are: in a part of a character, and in NUL.
Json token_to_json(const Tokenizer* tokenizer, int32_t id) {
  Json json = {{"id", id}, {"text", token_text(tokenizer, id)}};
  const std::string bytes = token_bytes(tokenizer, id);
  if (!is_clean_utf8(bytes)) json["bytes"] = std::vector<uint8_t>(bytes.begin(), bytes.end());
  return json;
}

Json predictions_to_json(std::span<const Prediction> predictions, const Tokenizer* tokenizer) {
  Json all = Json::array();
  for (const Prediction& prediction : predictions) {
    all.push_back({{"entropy_bits", prediction.entropy},
                   {"likeliest", chances_to_json(prediction.likeliest, tokenizer)}});
  }
  return all;
}

// Heads as a list for each layer, in which head h of layer l is heads[l][h].
Json parts_to_json(const Attribution& parts, int64_t n_heads, const Tokenizer* tokenizer) {
  Json heads = Json::array();
  for (auto head = parts.heads.begin(); head != parts.heads.end(); head += n_heads)
    heads.push_back(std::vector<float>(head, head + n_heads));
  Json json = {{"position", parts.position}, {"token", token_to_json(tokenizer, parts.token)}};
  if (parts.against >= 0) json["against"] = token_to_json(tokenizer, parts.against);
  json.update({{"logit", parts.logit},
               {"sum", parts.sum()},
               {"embedding", parts.embedding},
               {"norm_bias", parts.norm_bias},
               {"heads", std::move(heads)},
               {"attention_rest", parts.attention_rest},
               {"mlps", parts.mlps},
               {"rounding", parts.rounding}});
  return json;
}

// Rows at the beginning of the text are shorter than the number that is kept; their lists are too.
Json attention_to_json(const AttentionMap& map) {
  const HeadHabits habits = map.habits();
  Json strongest = Json::array();
  for (int64_t t = 0; t < std::ssize(map.first()); ++t) {
    Json row = Json::array();
    for (const AttentionMap::Kept& kept : map.row(t)) {
      if (kept.column >= 0) row.push_back({kept.column, kept.weight});
    }
    strongest.push_back(std::move(row));
  }
  return {{"habits",
           {{"first", habits.first},
            {"itself", habits.itself},
            {"previous", habits.previous},
            {"same", habits.same},
            {"after_same", habits.after_same}}},
          {"first", std::vector<float>(map.first().begin(), map.first().end())},
          {"strongest", std::move(strongest)},
          {"n_tiles", map.n_tiles()},
          {"tiles", std::vector<float>(map.tiles().begin(), map.tiles().end())}};
}

Json norms_to_json(const LayerNorms& norms) {
  return {{"layer", norms.layer},
          {"stream", norms.stream},
          {"attention", norms.attention},
          {"mlp", norms.mlp},
          {"outlier",
           {{"feature", norms.outlier_feature},
            {"token", norms.outlier_token},
            {"root_mean_squares", norms.outlier}}},
          {"dead_features", norms.n_dead},
          {"quiet_neurons", norms.n_quiet},
          {"first_quiet_neurons", norms.quiet}};
}

// JSON has no NaN, which the first token has: it becomes null.
Json surprises_to_json(std::span<const double> surprises) {
  Json json = Json::array();
  for (const double bits : surprises) json.push_back(std::isnan(bits) ? Json() : Json(bits));
  return json;
}

Json changes_to_json(std::span<const Contrast::Change> changes, const Tokenizer* tokenizer) {
  Json json = Json::array();
  for (const Contrast::Change& change : changes) {
    json.push_back(token_to_json(tokenizer, change.id));
    json.back()["before"] = change.before;
    json.back()["after"] = change.after;
  }
  return json;
}

}  // namespace

std::string token_bytes(const Tokenizer* tokenizer, int32_t id) {
  if (tokenizer == nullptr || id >= tokenizer->vocab_size()) return fmt::format("#{}", id);
  return std::string(tokenizer->bytes_of(id, true));
}

std::string token_text(const Tokenizer* tokenizer, int32_t id) {
  const std::string bytes = token_bytes(tokenizer, id);
  return is_clean_utf8(bytes) ? bytes : printable(bytes);
}

Json chances_to_json(std::span<const TokenChance> chances, const Tokenizer* tokenizer) {
  Json json = Json::array();
  for (const TokenChance& chance : chances) {
    json.push_back(token_to_json(tokenizer, chance.id));
    json.back()["p"] = chance.probability;
  }
  return json;
}

Json explanation_to_json(const Explanation& explanation, const Tokenizer* tokenizer) {
  Json json = {{"n_prompt", explanation.n_prompt},
               {"n_layers", explanation.n_layers},
               {"n_heads", explanation.n_heads}};
  Json& tokens = json["tokens"] = Json::array();
  for (const int32_t id : explanation.token_ids) tokens.push_back(token_to_json(tokenizer, id));
  json["surprise_bits"] = surprises_to_json(explanation.surprise);
  json["next"] = predictions_to_json(explanation.next, tokenizer);
  Json& lens = json["lens"] = Json::array();
  for (const LensLayer& layer : explanation.lens) {
    lens.push_back({{"layer", layer.layer},
                    {"predictions", predictions_to_json(layer.predictions, tokenizer)}});
  }
  Json& parts = json["parts"] = Json::array();
  for (const Attribution& each : explanation.parts)
    parts.push_back(parts_to_json(each, explanation.n_heads, tokenizer));
  Json& attention = json["attention"] = Json::array();
  for (size_t i = 0; i < explanation.attention.size(); ++i) {
    Json head = {{"layer", static_cast<int64_t>(i) / explanation.n_heads},
                 {"head", static_cast<int64_t>(i) % explanation.n_heads}};
    head.update(attention_to_json(explanation.attention[i]));
    attention.push_back(std::move(head));
  }
  Json& norms = json["norms"] = Json::array();
  for (const LayerNorms& each : explanation.norms) norms.push_back(norms_to_json(each));
  return json;
}

Json times_to_json(std::span<const OpTime> times, std::span<const double> shares) {
  Json json = Json::array();
  for (size_t i = 0; i < times.size(); ++i) {
    const OpTime& time = times[i];
    json.push_back({{"op", time.op},
                    {"n_calls", time.n_calls},
                    {"seconds", time.seconds},
                    {"weight_bytes", time.n_weight_bytes},
                    {"flops", static_cast<int64_t>(time.flops.sum())}});
    if (!shares.empty())
      json.back()["share_of_limit"] = std::isfinite(shares[i]) ? Json(shares[i]) : Json();
  }
  return json;
}

Json contrast_to_json(const Contrast& contrast, const Tokenizer* tokenizer) {
  const Json first = contrast.distance.empty() ? Json() : Json(contrast.first_layer());
  Json json = {{"first_layer", first},  // null: the models differ in shape
               {"distance", contrast.distance},
               {"token_distance", contrast.token_distance},
               {"divergence_bits", contrast.divergence},
               {"mean_divergence_bits", contrast.mean_divergence()},
               {"surprise_bits", surprises_to_json(contrast.surprise[1])},
               {"mean_surprise_bits", {contrast.mean_surprise(0), contrast.mean_surprise(1)}}};
  Json& all = json["token_changes"] = Json::array();
  for (const auto& changes : contrast.changes) all.push_back(changes_to_json(changes, tokenizer));
  json["changes"] = all.empty() ? Json::array() : all.back();
  return json;
}

}  // namespace limpid
