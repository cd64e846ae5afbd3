#include "insight/attention_map.h"

#include <algorithm>
#include <cmath>

namespace limpid {
namespace {

constexpr int64_t kMostTiles = 16;  // along one side of the small picture
constexpr int64_t kLanes = 16;

// x . y with independent sums, so that a compiler can compute them side by side.
float dot(const float* x, const float* y, int64_t n) {
  float sums[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int64_t lane = 0; lane < kLanes; ++lane) sums[lane] += x[i + lane] * y[i + lane];
  }
  float sum = 0;
  for (; i < n; ++i) sum += x[i] * y[i];
  for (const float each : sums) sum += each;
  return sum;
}

}  // namespace

void AttentionMap::Mean::add(double value) {
  sum += value;
  ++n;
}

AttentionMap::AttentionMap(int64_t n_tokens, int64_t n_kept)
    : n_tokens_(n_tokens),
      n_kept_(std::min(n_kept, std::max<int64_t>(n_tokens - 1, 0))),
      n_tiles_(std::min(n_tokens, kMostTiles)),
      tiles_(static_cast<size_t>(n_tiles_ * n_tiles_)) {}

void AttentionMap::add_row(std::span<const float> weights, std::span<const int32_t> ids) {
  const auto t = static_cast<int64_t>(first_.size());
  const int32_t own = ids[static_cast<size_t>(t)];
  double same = 0;
  double after_same = 0;
  bool has_same = false;
  for (int64_t s = 0; s < t; ++s) {
    if (ids[static_cast<size_t>(s)] != own) continue;
    has_same = true;
    same += weights[static_cast<size_t>(s)];
    after_same += weights[static_cast<size_t>(s + 1)];
  }
  first_.push_back(weights[0]);
  to_itself_.add(weights[static_cast<size_t>(t)]);
  if (t > 0) {
    to_first_.add(weights[0]);
    to_previous_.add(weights[static_cast<size_t>(t - 1)]);
  }
  if (has_same) {
    to_same_.add(same);
    to_after_same_.add(after_same);
  }
  std::vector<Kept> others;
  others.reserve(static_cast<size_t>(t));
  for (int64_t s = 1; s <= t; ++s)
    others.push_back({static_cast<int32_t>(s), weights[static_cast<size_t>(s)]});
  const auto n = std::min<int64_t>(n_kept_, t);
  std::ranges::partial_sort(others, others.begin() + n, std::ranges::greater(), &Kept::weight);
  others.resize(static_cast<size_t>(n_kept_), Kept{});
  for (int64_t i = n; i < n_kept_; ++i) others[static_cast<size_t>(i)] = {};
  kept_.insert(kept_.end(), others.begin(), others.end());
  float* tile_row = tiles_.data() + t * n_tiles_ / n_tokens_ * n_tiles_;
  for (int64_t s = 0; s <= t; ++s) {
    float& tile = tile_row[s * n_tiles_ / n_tokens_];
    tile = std::max(tile, weights[static_cast<size_t>(s)]);
  }
}

std::span<const AttentionMap::Kept> AttentionMap::row(int64_t t) const {
  return std::span(kept_).subspan(static_cast<size_t>(t * n_kept_), static_cast<size_t>(n_kept_));
}

HeadHabits AttentionMap::habits() const {
  return {to_first_.value(), to_itself_.value(), to_previous_.value(), to_same_.value(),
          to_after_same_.value()};
}

// The largest score is subtracted first, so that no exponential overflows.
void attention_weights(std::span<const float> q, std::span<const float> keys, int64_t stride,
                       float scale, std::span<float> weights) {
  const auto head_dim = static_cast<int64_t>(q.size());
  float largest = -INFINITY;
  for (size_t s = 0; s < weights.size(); ++s) {
    weights[s] = scale * dot(q.data(), keys.data() + static_cast<int64_t>(s) * stride, head_dim);
    largest = std::max(largest, weights[s]);
  }
  double sum = 0;
  for (float& weight : weights) {
    weight = std::exp(weight - largest);
    sum += weight;
  }
  for (float& weight : weights) weight = static_cast<float>(weight / sum);
}

}  // namespace limpid
