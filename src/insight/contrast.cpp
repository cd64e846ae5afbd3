#include "insight/contrast.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>

#include "base/check.h"
#include "base/parse_number.h"
#include "generate/logprobs.h"
#include "insight/weight_statistics.h"

namespace limpid {
namespace {

constexpr int64_t kChunk = 64;
// What follows the layer in the name of a part that is not a head, and where the part lies.
constexpr std::pair<std::string_view, Place> kParts[] = {{"", Place::kFfnResidual},
                                                         {"attn", Place::kAttnOutput},
                                                         {"attention", Place::kAttnOutput},
                                                         {"mlp", Place::kFfnOutput}};
constexpr PlaceSet kPlacesOfParts(Place::kFfnResidual, Place::kAttnOutput, Place::kAttnHeads,
                                  Place::kFfnOutput);

// "12" is 12; "", "-1", "1.5" and "12a" are not whole numbers.
std::optional<int64_t> whole_number(std::string_view text) {
  const auto number = parse_number<int64_t>(text);
  return number && *number >= 0 ? number : std::nullopt;
}

// Applies one edit to the rows of a place [n, n_cols]. With x = (3, 4) and an edit of both columns:
// keep = 0 alone gives (0, 0), ablation; keep = 0 and (5, 6) gives (5, 6), patching; keep = 1 and
// (1, -1) gives (4, 3), steering. What is not kept is not multiplied by 0, since NaN would stay.
void apply(const Edit& edit, std::span<const int32_t> positions, std::span<float> values) {
  const size_t n_cols = values.size() / positions.size();
  for (size_t row = 0; row < positions.size(); ++row) {
    const auto found = edit.at.find(positions[row]);
    if (found == edit.at.end() && !edit.at.empty()) continue;
    const std::vector<float>& added = edit.at.empty() ? edit.everywhere : found->second;
    const std::span<float> x = edit.part.of(values.subspan(row * n_cols, n_cols));
    for (size_t j = 0; j < x.size(); ++j)
      x[j] = (edit.keep == 0 ? 0 : edit.keep * x[j]) + (added.empty() ? 0 : added[j]);
  }
}

// One run, chunk by chunk, and its residual streams of the chunk.
class Runner {
 public:
  Runner(ContrastRun run, int64_t n_tokens)
      : run_(std::move(run)),
        cache_(run_.model.make_cache_for_one(n_tokens, DType::kF32, DType::kF32)) {}

  void step(std::span<const int32_t> ids) {
    streams.clear();
    const Observing watch(run_.probe, PlaceSet(Place::kEmbedding, Place::kFfnResidual),
                          [this](Place, int64_t, std::span<const float> values) {
                            streams.emplace_back(values.begin(), values.end());
                          });
    set_edits(run_.probe, run_.edits);
    const StepItem item{sequence_, ids, StepItem::Outputs::kAll};
    const auto result = run_.model.step(*cache_, {&item, 1});
    logits.assign(result.begin(), result.end());
    set_edits(run_.probe, {});
  }

  std::vector<std::vector<float>> streams;  // the embedding, and after each block [n, d_model]
  std::vector<float> logits;                // [n, vocab_size]

 private:
  ContrastRun run_;
  std::unique_ptr<KvCache> cache_;
  SequenceId sequence_ = cache_->add_sequence();
};

// The predictions of both runs after one token. Of logits l with log Z = log sum e^l, log p is
// l - log Z.
struct TwoPredictions {
  std::span<const float> a;
  std::span<const float> b;
  double norm_a = log_sum_exp(a);
  double norm_b = log_sum_exp(b);

  double log_a(size_t i) const { return a[i] - norm_a; }
  double log_b(size_t i) const { return b[i] - norm_b; }
};

// KL(a || b) = sum p_a (log p_a - log p_b), in bits. For probabilities (1/2, 1/2) and (1/4, 3/4):
// 1/2 log 2 + 1/2 log 2/3 = 0.21 bits. Rounding may make the divergence of equal distributions
// slightly negative.
double divergence(const TwoPredictions& two) {
  double sum = 0;
  for (size_t i = 0; i < two.a.size(); ++i)
    sum += std::exp(two.log_a(i)) * (two.log_a(i) - two.log_b(i));
  return sum < 0 ? 0 : sum / std::numbers::ln2;  // NaN stays
}

// The tokens whose probability changes most, in whichever direction. The measure is the difference
// of the probabilities and not their ratio: nobody would see a change from 1e-9 to 1e-6.
std::vector<Contrast::Change> largest_changes(const TwoPredictions& two, int64_t n) {
  Ranking largest(n);
  for (size_t i = 0; i < two.a.size(); ++i) {
    const double change = std::abs(std::exp(two.log_b(i)) - std::exp(two.log_a(i)));
    if (change > 0) largest.offer(static_cast<float>(change), static_cast<int64_t>(i));
  }
  std::vector<Contrast::Change> changes;
  for (const RankedNumber& each : largest.kept()) {
    const auto i = size_of(each.index);
    changes.push_back({static_cast<int32_t>(i), std::exp(two.log_a(i)), std::exp(two.log_b(i))});
  }
  return changes;
}

}  // namespace

std::optional<NameInLayer> name_in_layer(std::string_view name) {
  const std::string_view prefix = name.starts_with('L') ? "L" : "blk.";
  if (!name.starts_with(prefix) || name.ends_with('.')) return std::nullopt;
  name.remove_prefix(prefix.size());
  const size_t dot = std::min(name.find('.'), name.size());
  const auto layer = whole_number(name.substr(0, dot));
  if (!layer) return std::nullopt;
  return NameInLayer{*layer, name.substr(std::min(dot + 1, name.size()))};
}

std::optional<ModelPart> find_part(std::string_view name, const DecoderSpec& spec) {
  const auto named = name_in_layer(name);
  if (!named) return std::nullopt;
  const auto& [layer, rest] = *named;
  const auto* part = std::ranges::find_if(kParts, [&rest = named->rest](const auto& each) {
    return rest == each.first || rest == place_name(each.second);
  });
  const auto head = rest.starts_with('H') ? whole_number(rest.substr(1)) : std::nullopt;
  if (part == std::end(kParts) && !head) return std::nullopt;
  LIMPID_CHECK(ArgumentError, layer < spec.n_layers, "part '{}': the model has layers 0 to {}",
               name, spec.n_layers - 1);
  LIMPID_CHECK(ArgumentError, head.value_or(0) < spec.n_heads,
               "part '{}': a layer has heads 0 to {}", name, spec.n_heads - 1);
  if (!head) return ModelPart{part->second, layer};
  return ModelPart{Place::kAttnHeads, layer, *head * spec.head_dim, spec.head_dim};
}

ModelPart model_part(std::string_view name, const DecoderSpec& spec) {
  const auto part = find_part(name, spec);
  LIMPID_CHECK(ArgumentError, part.has_value(),
               "part '{}' is not of the form L3, L3.attn, L3.mlp or L3.H5", name);
  return *part;
}

// The positions of the rows are those of the step in progress, which the executor knows.
void set_edits(ProbeExecutor& probe, std::vector<Edit> edits) {
  if (edits.empty()) return probe.set_intervention({}, {});
  probe.set_intervention(kPlacesOfParts, [&probe, edits = std::move(edits)](
                                             Place place, int64_t layer, std::span<float> values) {
    bool changed = false;
    for (const Edit& edit : edits) {
      if (edit.part.layer != layer || edit.part.place != place) continue;
      apply(edit, probe.inputs().positions, values);
      changed = true;
    }
    return changed;
  });
}

std::vector<PartValues> values_of_parts(Model& model, ProbeExecutor& probe,
                                        std::span<const ModelPart> parts,
                                        std::span<const int32_t> token_ids) {
  std::vector<PartValues> values(parts.size());
  const auto see = [&](Place place, int64_t layer, std::span<const float> seen) {
    const int64_t n_cols = std::ssize(seen) / std::ssize(token_ids);
    for (size_t i = 0; i < parts.size(); ++i) {
      if (parts[i].layer != layer || parts[i].place != place) continue;
      for (int64_t row = 0; row < std::ssize(token_ids); ++row) {
        const auto x = parts[i].of(row_of(seen, row, n_cols));
        values[i].emplace_back(x.begin(), x.end());
      }
    }
  };
  const Observing watch(probe, kPlacesOfParts, see);
  const auto cache = model.make_cache_for_one(std::ssize(token_ids), DType::kF32, DType::kF32);
  const StepItem item{cache->add_sequence(), token_ids, StepItem::Outputs::kNone};
  model.step(*cache, {&item, 1});
  return values;
}

int64_t Contrast::first_layer() const {
  // NaN differs too.
  const auto found = std::ranges::find_if(distance, [](double each) { return !(each == 0); });
  return found - distance.begin() - 1;
}

double Contrast::mean_surprise(int run) const {
  double sum = 0;
  for (size_t t = 1; t < surprise[run].size(); ++t) sum += surprise[run][t];
  return sum / std::max<double>(1, static_cast<double>(std::ssize(surprise[run]) - 1));
}

double Contrast::mean_divergence() const {
  return std::accumulate(divergence.begin(), divergence.end(), 0.0) /
         std::max<double>(1, static_cast<double>(divergence.size()));
}

// Both runs take turns, a chunk each, so memory holds the logits of only two chunks: 25 MB for a
// vocabulary of 49,152, whatever the length of the text.
Contrast contrast(ContrastRun first, ContrastRun second, std::span<const int32_t> token_ids,
                  const ContrastOptions& options) {
  const DecoderSpec& spec = first.model.spec();
  const DecoderSpec& other = second.model.spec();
  LIMPID_CHECK(ArgumentError, spec.vocab_size == other.vocab_size,
               "the models have vocabularies of {} and {} tokens: their predictions cannot be "
               "compared",
               spec.vocab_size, other.vocab_size);
  const bool same_shape = spec.n_layers == other.n_layers && spec.d_model == other.d_model;
  const int64_t n_tokens = std::ssize(token_ids);
  const int64_t n_each =
      std::clamp<int64_t>(options.most_changes / std::max<int64_t>(1, n_tokens), 1, options.n_each);
  Runner a(std::move(first), n_tokens);
  Runner b(std::move(second), n_tokens);
  Contrast result;
  std::vector<Distance> distances(same_shape ? size_of(spec.n_layers + 1) : 0);
  for (auto& surprises : result.surprise)
    surprises.assign(1, std::numeric_limits<double>::quiet_NaN());
  for (int64_t begin = 0; begin < n_tokens; begin += kChunk) {
    const int64_t n = std::min(kChunk, n_tokens - begin);
    a.step(token_ids.subspan(size_of(begin), size_of(n)));
    b.step(token_ids.subspan(size_of(begin), size_of(n)));
    for (size_t i = 0; i < distances.size(); ++i) distances[i].add(a.streams[i], b.streams[i]);
    for (int64_t t = 0; t < n; ++t) {
      const TwoPredictions two{row_of(a.logits, t, spec.vocab_size),
                               row_of(b.logits, t, spec.vocab_size)};
      const bool is_last = begin + t + 1 == n_tokens;
      result.divergence.push_back(divergence(two));
      result.changes.push_back(largest_changes(two, is_last ? options.n_last : n_each));
      if (same_shape) {
        result.token_distance.push_back(relative_difference(
            row_of(a.streams.back(), t, spec.d_model), row_of(b.streams.back(), t, spec.d_model)));
      }
      if (is_last) continue;
      const auto next = size_of(token_ids[size_of(begin + t + 1)]);
      result.surprise[0].push_back(surprise(two.log_a(next)));
      result.surprise[1].push_back(surprise(two.log_b(next)));
    }
  }
  for (const Distance& each : distances) result.distance.push_back(each.value());
  return result;
}

}  // namespace limpid
