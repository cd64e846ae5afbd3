#include "insight/activation_sizes.h"

#include <algorithm>
#include <cmath>

namespace limpid {
namespace {

constexpr float kQuiet = 0.01F;
constexpr int64_t kRowsPerThread = 16;
constexpr int64_t kColumnsAtOnce = 256;

}  // namespace

ActivationSizes::ActivationSizes(int64_t n_layers, ThreadPool& pool)
    : pool_(pool),
      norms_(size_of(n_layers + 1)),
      neurons_(size_of(n_layers)),
      features_(size_of(n_layers + 1)) {
  for (int64_t layer = -1; layer < n_layers; ++layer) norms_[size_of(layer + 1)].layer = layer;
}

void ActivationSizes::begin(int64_t n_tokens) {
  begin_ = end_;
  end_ += n_tokens;
}

void ActivationSizes::see(Place place, int64_t layer, std::span<const float> values) {
  LayerNorms& norms = norms_[size_of(layer + 1)];
  switch (place) {
    case Place::kEmbedding:
    case Place::kFfnResidual:
      return add_stream(norms, values);
    case Place::kAttnOutput:
      return add_norms(norms.attention, values);
    case Place::kFfnHidden:
      return add_neurons(neurons_[size_of(layer)], values);
    case Place::kFfnOutput:
      return add_norms(norms.mlp, values);
    default:
      return;
  }
}

std::vector<LayerNorms> ActivationSizes::take() {
  for (size_t i = 0; i < neurons_.size(); ++i) count_quiet(neurons_[i], norms_[i + 1]);
  for (size_t i = 0; i < features_.size(); ++i) {
    norms_[i].n_dead =
        std::ranges::count_if(features_[i], [](float each) { return each < kQuiet; });
  }
  return std::move(norms_);
}

void ActivationSizes::add_norms(std::vector<float>& norms, std::span<const float> values) {
  const int64_t n_cols = std::ssize(values) / (end_ - begin_);
  norms.resize(size_of(end_));
  pool_.for_each(end_ - begin_, kRowsPerThread, [&](int64_t i) {
    const float* x = row_of(values, i, n_cols).data();
    norms[size_of(begin_ + i)] = static_cast<float>(std::sqrt(kernels_.squares(x, n_cols)));
  });
}

// Raises the largest |value| of each column by the rows of the chunk, row i times scales[i].
void ActivationSizes::raise_columns(std::span<const float> values, std::span<const float> scales,
                                    std::vector<float>& largest) {
  const int64_t width = std::ssize(values) / (end_ - begin_);
  largest.resize(size_of(width));
  pool_.for_ranges(width, kColumnsAtOnce, [&](int64_t from, int64_t to, int /*thread*/) {
    for (size_t i = 0; i < scales.size(); ++i)
      kernels_.raise(row_of(values, static_cast<int64_t>(i), width).data() + from, to - from,
                     scales[i], largest.data() + from);
  });
}

void ActivationSizes::add_stream(LayerNorms& norms, std::span<const float> values) {
  const int64_t d_model = std::ssize(values) / (end_ - begin_);
  add_norms(norms.stream, values);
  std::vector<float> largest(size_of(end_ - begin_));
  std::vector<float> scales(largest.size());  // to root mean squares
  pool_.for_each(end_ - begin_, kRowsPerThread, [&](int64_t i) {
    const float* x = row_of(values, i, d_model).data();
    largest[size_of(i)] = kernels_.largest_size(x, d_model);
    scales[size_of(i)] = static_cast<float>(std::sqrt(d_model)) / norms.stream[size_of(begin_ + i)];
  });
  raise_columns(values, scales, features_[size_of(norms.layer + 1)]);
  for (int64_t i = 0; i < end_ - begin_; ++i) {
    const double size = norms.stream[size_of(begin_ + i)] / std::sqrt(d_model);
    const float most = largest[size_of(i)];
    if (!(most / size > std::abs(norms.outlier))) continue;  // also where something is NaN
    const auto x = row_of(values, i, d_model);
    const auto feature = std::ranges::find(x, most, [](float value) { return std::abs(value); });
    norms.outlier = static_cast<float>(*feature / size);
    norms.outlier_feature = feature - x.begin();
    norms.outlier_token = begin_ + i;
  }
}

void ActivationSizes::add_neurons(Neurons& neurons, std::span<const float> values) {
  const int64_t n = end_ - begin_;
  const int64_t width = std::ssize(values) / n;
  raise_columns(values, std::vector<float>(size_of(n), 1), neurons.largest);
  std::vector<double> squares(size_of(n));
  pool_.for_each(end_ - begin_, kRowsPerThread, [&](int64_t i) {
    squares[size_of(i)] = kernels_.squares(row_of(values, i, width).data(), width);
  });
  for (const double each : squares) neurons.squares += each;
}

// Only at the end: the limit is a share of the root mean square over the whole text.
void ActivationSizes::count_quiet(const Neurons& neurons, LayerNorms& norms) const {
  const auto& [largest, squares] = neurons;
  const auto n = static_cast<double>(std::ssize(largest) * end_);
  const double limit = kQuiet * std::sqrt(squares / n);
  for (size_t i = 0; i < largest.size(); ++i) {
    if (!(largest[i] < limit)) continue;
    if (norms.n_quiet++ < LayerNorms::kMostNamed) norms.quiet.push_back(static_cast<int64_t>(i));
  }
}

}  // namespace limpid
