#include "insight/explanation_json.h"

#include <fmt/format.h>

#include "base/printable.h"

namespace limpid {
namespace {

using Json = nlohmann::ordered_json;

// JSON has no NaN, which the surprise of the first token is, and the share of an op without limits:
// dump_json writes null.

// As OpenAI's log-probabilities do, "bytes" has a list of numbers. It is there where the text does
// not say what the bytes are: in a part of a character, and in NUL.
Json token_to_json(const Tokenizer* tokenizer, int32_t id) {
  Json json = {{"id", id}, {"text", token_text(tokenizer, id)}};
  const std::string bytes = token_bytes(tokenizer, id);
  if (!is_clean_utf8(bytes)) json["bytes"] = std::vector<uint8_t>(bytes.begin(), bytes.end());
  return json;
}

Json predictions_to_json(std::span<const Prediction> predictions, const Tokenizer* tokenizer) {
  return list_of(predictions, [&](const Prediction& prediction) -> Json {
    return {{"entropy_bits", prediction.entropy},
            {"likeliest", chances_to_json(prediction.likeliest, tokenizer)}};
  });
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
Json attention_to_json(int64_t layer, int64_t head, const AttentionMap& map) {
  const HeadHabits habits = map.habits();
  Json strongest = Json::array();
  for (int64_t t = 0; t < std::ssize(map.first()); ++t) {
    Json row = Json::array();
    for (const AttentionMap::Kept& kept : map.row(t)) {
      if (kept.column >= 0) row.push_back({kept.column, kept.weight});
    }
    strongest.push_back(std::move(row));
  }
  return {{"layer", layer},
          {"head", head},
          {"habits",
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

Json changes_to_json(std::span<const Contrast::Change> changes, const Tokenizer* tokenizer) {
  return list_of(changes, [&](const Contrast::Change& change) {
    Json json = token_to_json(tokenizer, change.id);
    json["before"] = change.before;
    json["after"] = change.after;
    return json;
  });
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
  return list_of(chances, [&](const TokenChance& chance) {
    Json json = token_to_json(tokenizer, chance.id);
    json["p"] = chance.probability;
    return json;
  });
}

Json explanation_to_json(const Explanation& explanation, const Tokenizer* tokenizer) {
  const int64_t n_heads = explanation.n_heads;
  const auto token = [&](int32_t id) { return token_to_json(tokenizer, id); };
  const auto lens = [&](const LensLayer& layer) -> Json {
    return {{"layer", layer.layer},
            {"predictions", predictions_to_json(layer.predictions, tokenizer)}};
  };
  const auto parts = [&](const Attribution& each) {
    return parts_to_json(each, n_heads, tokenizer);
  };
  Json attention = Json::array();
  for (const AttentionMap& map : explanation.attention) {
    const auto i = static_cast<int64_t>(attention.size());
    attention.push_back(attention_to_json(i / n_heads, i % n_heads, map));
  }
  return {{"n_prompt", explanation.n_prompt},
          {"n_layers", explanation.n_layers},
          {"n_heads", n_heads},
          {"tokens", list_of(explanation.token_ids, token)},
          {"surprise_bits", explanation.surprise},
          {"next", predictions_to_json(explanation.next, tokenizer)},
          {"lens", list_of(explanation.lens, lens)},
          {"parts", list_of(explanation.parts, parts)},
          {"attention", std::move(attention)},
          {"norms", list_of(explanation.norms, norms_to_json)}};
}

Json times_to_json(std::span<const OpTime> times) {
  return list_of(times, [](const OpTime& time) {
    Json json = {{"op", time.op},
                 {"n_calls", time.n_calls},
                 {"seconds", time.seconds},
                 {"weight_bytes", time.n_weight_bytes},
                 {"flops", static_cast<int64_t>(time.flops.sum())}};
    if (time.share) json["share_of_limit"] = *time.share;
    return json;
  });
}

Json contrast_to_json(const Contrast& contrast, const Tokenizer* tokenizer) {
  const Json first = contrast.distance.empty() ? Json() : Json(contrast.first_layer());
  const Json changes = list_of(
      contrast.changes, [&](const auto& of_token) { return changes_to_json(of_token, tokenizer); });
  return {{"first_layer", first},  // null: the models differ in shape
          {"distance", contrast.distance},
          {"token_distance", contrast.token_distance},
          {"divergence_bits", contrast.divergence},
          {"mean_divergence_bits", contrast.mean_divergence()},
          {"surprise_bits", contrast.surprise[1]},
          {"mean_surprise_bits", {contrast.mean_surprise(0), contrast.mean_surprise(1)}},
          {"token_changes", changes},
          {"changes", changes.empty() ? Json::array() : changes.back()}};
}

}  // namespace limpid
