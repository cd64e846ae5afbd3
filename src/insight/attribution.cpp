#include "insight/attribution.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <unordered_map>

#include "base/check.h"
#include "executor/cpu/isa.h"
#include "executor/cpu/matrix_product.h"
#include "insight/row_kernels.h"
#include "tensor/codec.h"

namespace limpid {
namespace {

constexpr int64_t kRowsAtOnce = 16;

double mean_of(const auto& numbers) {
  return std::accumulate(numbers.begin(), numbers.end(), 0.0) / static_cast<double>(numbers.size());
}

}  // namespace

double Attribution::sum() const {
  double sum = embedding + norm_bias + rounding;
  for (const auto* parts : {&heads, &attention_rest, &mlps})
    sum = std::accumulate(parts->begin(), parts->end(), sum);
  return sum;
}

LayerRows::LayerRows(int64_t n_layers, int64_t most_numbers, ThreadPool& pool)
    : most_numbers_(size_of(most_numbers)),
      room_(size_of(n_layers) * most_numbers_ * sizeof(float)),
      sizes_(size_of(n_layers)) {
  constexpr int64_t kPage = 4096 / sizeof(float);
  constexpr int64_t kTouchedAtOnce = (2 << 20) / sizeof(float);
  const std::span<float> room = room_.as<float>();
  pool.for_ranges(std::ssize(room), kTouchedAtOnce, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; i += kPage) room[size_of(i)] = 0;
  });
}

void LayerRows::append(size_t layer, std::span<const float> rows, ThreadPool& pool) {
  constexpr int64_t kCopiedAtOnce = 1 << 14;
  LIMPID_CHECK(ShapeError, rows.size() <= most_numbers_ - sizes_[layer],
               "[attribution] {} numbers of layer {} and {} more, with room for {}", sizes_[layer],
               layer, rows.size(), most_numbers_);
  float* to = room_.as<float>().data() + layer * most_numbers_ + sizes_[layer];
  pool.for_ranges(std::ssize(rows), kCopiedAtOnce, [&](int64_t begin, int64_t end, int /*thread*/) {
    std::copy(rows.begin() + begin, rows.begin() + end, to + begin);
  });
  sizes_[layer] += rows.size();
}

Attributor::Attributor(const Model& model, const ProbeExecutor& probe, ThreadPool& pool,
                       int32_t against)
    : model_(model),
      probe_(probe),
      spec_(model.spec()),
      pool_(pool),
      width_(spec_.n_heads * spec_.head_dim),
      against_(against),
      is_centred_(spec_.norm == NormKind::kLayer),
      head_(probe.source(model.weights().output)),
      head_rows_(head_),
      wo_(size_of(spec_.d_model * width_)),
      scratch_(size_of(multiply_scratch_floats(pool.size()))) {
  const DecoderWeights& weights = model.weights();
  if (weights.output_norm) gain_ = decode_vector(probe.source(weights.output_norm));
  if (weights.output_norm_bias) bias_ = decode_vector(probe.source(weights.output_norm_bias));
}

std::vector<float> Attributor::output_row(int32_t token) const {
  std::vector<float> values(size_of(head_.tensor.shape.cols()));
  decode_row(head_.tensor.dtype, head_rows_.row(token), values);
  return values;
}

// The part of a direction that depends on the token, g * w_v, is kept apart from the scale s, which
// depends on the stream: many tokens occur more than once in a text, and their logits share one
// direction.
std::vector<float> Attributor::direction_of_logit(int32_t token, double& norm_bias) const {
  std::vector<float> u = output_row(token);  // w_v
  if (against_ >= 0) std::ranges::transform(u, output_row(against_), u.begin(), std::minus());
  norm_bias = bias_.empty() ? 0 : dot_f64(u, bias_);
  if (gain_.empty()) return u;             // the model has no final norm
  std::vector<double> weighted(u.size());  // g * w_v
  for (size_t i = 0; i < u.size(); ++i) weighted[i] = static_cast<double>(gain_[i]) * u[i];
  // (c - mean(c)) . a = c . (a - mean(a))
  const double offset = is_centred_ ? mean_of(weighted) : 0;
  for (size_t i = 0; i < u.size(); ++i) u[i] = static_cast<float>(weighted[i] - offset);
  return u;
}

double Attributor::scale(std::span<const float> stream) const {
  if (gain_.empty()) return 1;
  const double mean = is_centred_ ? mean_of(stream) : 0;
  double squares = 0;
  for (const float x : stream) squares += (x - mean) * (x - mean);
  return 1 / std::sqrt(squares / static_cast<double>(stream.size()) +
                       static_cast<double>(spec_.norm_eps));
}

std::span<const float> Attributor::direction(int64_t row) const {
  return row_of(directions_, direction_of_[size_of(row)], spec_.d_model);
}

void Attributor::begin(std::span<const int32_t> tokens) {
  n_rows_ = std::ssize(tokens);
  last_is_open_ = !tokens.empty() && tokens.back() < 0;
  last_rows_.clear();
  if (last_is_open_) tokens = tokens.first(tokens.size() - 1);
  attributions_.assign(tokens.size(), {});
  direction_of_.clear();
  std::vector<int32_t> different;
  std::unordered_map<int32_t, int64_t> found;
  for (const int32_t token : tokens) {
    const auto [at, is_new] = found.try_emplace(token, std::ssize(different));
    if (is_new) different.push_back(token);
    direction_of_.push_back(at->second);
  }
  directions_.resize(different.size() * size_of(spec_.d_model));
  std::vector<double> norm_biases(different.size());
  pool_.for_each(std::ssize(different), 1, [&](int64_t i) {
    const auto at = size_of(i);
    std::ranges::copy(direction_of_logit(different[at], norm_biases[at]),
                      directions_.begin() + i * spec_.d_model);
  });
  const auto n_layers = size_of(spec_.n_layers);
  pool_.for_each(std::ssize(attributions_), kRowsAtOnce, [&](int64_t row) {
    Attribution& attribution = attributions_[size_of(row)];
    attribution.token = tokens[size_of(row)];
    attribution.against = against_;
    attribution.norm_bias = norm_biases[size_of(direction_of_[size_of(row)])];
    attribution.heads.resize(n_layers * size_of(spec_.n_heads));
    attribution.attention_rest.resize(n_layers);
    attribution.mlps.resize(n_layers);
  });
}

// What attention added to the stream is known, and so is its product with u. The part of this
// product that the heads do not explain is the rest: biases, low-rank updates, rounding.
void Attributor::see(Place place, int64_t layer, std::span<const float> values) {
  if (n_rows_ == 0) return;
  const int64_t n_cols = std::ssize(values) / n_rows_;
  if (last_is_open_) {
    const auto last = values.last(size_of(n_cols));
    last_rows_.push_back({place, layer, {last.begin(), last.end()}});
  }
  if (attributions_.empty()) return;
  if (place == Place::kAttnHeads) return add_heads(layer, values);
  const auto at = size_of(std::max<int64_t>(layer, 0));
  pool_.for_each(std::ssize(attributions_), kRowsAtOnce, [&](int64_t row) {
    const double part = dot_f64(row_of(values, row, n_cols), direction(row));
    Attribution& attribution = attributions_[size_of(row)];
    if (place == Place::kEmbedding) attribution.embedding = part;
    if (place == Place::kAttnOutput)
      attribution.attention_rest[at] = static_cast<float>(part - of_heads_[size_of(row)]);
    if (place == Place::kFfnOutput) attribution.mlps[at] = static_cast<float>(part);
  });
}

// The part of head h is z^h . (W_O^h)^T u, a product of head_dim numbers, once u is turned into the
// head's own space. That costs d_model * n_heads * head_dim products for each logit, as much as the
// output projection itself, and not n_heads times as much. All directions are turned together, by
// one product of matrices: [n, d_model] [d_model, n_heads * head_dim], n different tokens.
void Attributor::add_heads(int64_t layer, std::span<const float> heads) {
  decode_output_projection(layer);
  const int64_t n_directions = std::ssize(directions_) / spec_.d_model;
  in_heads_.resize(size_of(n_directions * width_));
  of_heads_.resize(attributions_.size());
  MatrixProduct product;
  product.right = wo_.data();
  product.right_stride = product.cols = width_;
  product.y = in_heads_.data();
  multiply(*choose_isa("").kernels, pool_,
           {directions_.data(), spec_.d_model, n_directions, spec_.d_model}, {&product, 1},
           scratch_.data());
  pool_.for_each(std::ssize(attributions_), kRowsAtOnce, [&](int64_t row) {
    const auto z = row_of(heads, row, width_);
    const auto u = row_of(in_heads_, direction_of_[size_of(row)], width_);
    float* parts = attributions_[size_of(row)].heads.data() + layer * spec_.n_heads;
    double sum = 0;
    for (int64_t head = 0; head < spec_.n_heads; ++head) {
      const double part = dot_f64(row_of(z, head, spec_.head_dim), row_of(u, head, spec_.head_dim));
      parts[head] = static_cast<float>(part);
      sum += part;
    }
    of_heads_[size_of(row)] = sum;
  });
}

// The output projection of the layer as f32 [d_model, width], whatever its type. Its column j says
// where element j of the heads goes in the residual stream.
void Attributor::decode_output_projection(int64_t layer) {
  const WeightSource& source = probe_.source(model_.weights().blocks[size_of(layer)].wo);
  const StoredRows rows(source);
  pool_.for_each(spec_.d_model, 16, [&](int64_t i) {
    decode_row(source.tensor.dtype, rows.row(i),
               std::span(wo_).subspan(size_of(i * width_), size_of(width_)));
  });
}

// The parts so far are of u / s.
void Attributor::finish(std::span<const float> streams, std::span<const WantedLogit> wanted) {
  pool_.for_each(std::ssize(attributions_), kRowsAtOnce, [&](int64_t row) {
    const WantedLogit& want = wanted[size_of(row)];
    const auto stream = row_of(streams, row, spec_.d_model);
    const double s = scale(stream);
    Attribution& attribution = attributions_[size_of(row)];
    attribution.position = want.position;
    attribution.logit = want.logit;
    attribution.rounding = want.logit - attribution.norm_bias - s * dot_f64(stream, direction(row));
    attribution.embedding *= s;
    for (auto* parts : {&attribution.heads, &attribution.attention_rest, &attribution.mlps}) {
      for (float& part : *parts) part = static_cast<float>(s * part);
    }
  });
}

std::vector<Attribution> Attributor::end(std::span<const float> streams,
                                         std::span<const WantedLogit> wanted) {
  finish(streams, wanted);
  std::vector<Attribution> all = std::move(attributions_);
  if (last_is_open_) {
    const std::vector<SeenRow> rows = std::move(last_rows_);
    begin({&wanted.back().token, 1});
    for (const auto& [place, layer, values] : rows) see(place, layer, values);
    finish(streams.last(size_of(spec_.d_model)), wanted.last(1));
    all.push_back(std::move(attributions_.front()));
  }
  begin({});
  return all;
}

}  // namespace limpid
