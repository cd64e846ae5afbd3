#include "insight/attribution.h"

#include <cmath>
#include <numeric>

#include "base/thread_pool.h"
#include "tensor/codec.h"

namespace limpid {
namespace {

std::span<const float> row_of(std::span<const float> values, int64_t row, int64_t n_cols) {
  return values.subspan(static_cast<size_t>(row * n_cols), static_cast<size_t>(n_cols));
}

double dot(std::span<const float> x, std::span<const float> y) {
  return std::inner_product(x.begin(), x.end(), y.begin(), 0.0, std::plus<>(),
                            [](double a, double b) { return a * b; });
}

std::vector<float> decoded_row(const WeightSource& source, const StoredRows& rows, int64_t row) {
  std::vector<float> values(static_cast<size_t>(source.tensor.shape.cols()));
  decode_row(source.tensor.dtype, rows.row(row), values);
  return values;
}

// The final norm and the output matrix as directions in the residual stream.
class Readout {
 public:
  Readout(const Model& model, const ProbeExecutor& probe)
      : spec_(model.spec()), head_(probe.source(model.weights().output)), head_rows_(head_) {
    const DecoderWeights& weights = model.weights();
    if (weights.output_norm) gain_ = decode_vector(probe.source(weights.output_norm));
    if (weights.output_norm_bias) bias_ = decode_vector(probe.source(weights.output_norm_bias));
  }

  // u of the logit of `token` where the final norm reads `stream` [d_model]; and b . w_v.
  std::vector<float> direction(int32_t token, std::span<const float> stream,
                               double& norm_bias) const {
    std::vector<float> u = decoded_row(head_, head_rows_, token);  // w_v
    norm_bias = bias_.empty() ? 0 : dot(u, bias_);
    if (gain_.empty()) return u;  // the model has no final norm
    const auto n = static_cast<double>(u.size());
    const bool centred = spec_.norm == NormKind::kLayer;
    const double mean = centred ? std::accumulate(stream.begin(), stream.end(), 0.0) / n : 0;
    double squares = 0;
    for (const float x : stream) squares += (x - mean) * (x - mean);
    const double scale = 1 / std::sqrt(squares / n + static_cast<double>(spec_.norm_eps));
    std::vector<double> weighted(u.size());  // g * w_v
    for (size_t i = 0; i < u.size(); ++i) weighted[i] = static_cast<double>(gain_[i]) * u[i];
    // (c - mean(c)) . a = c . (a - mean(a))
    const double offset = centred ? std::accumulate(weighted.begin(), weighted.end(), 0.0) / n : 0;
    for (size_t i = 0; i < u.size(); ++i) u[i] = static_cast<float>(scale * (weighted[i] - offset));
    return u;
  }

 private:
  const DecoderSpec& spec_;
  const WeightSource& head_;
  StoredRows head_rows_;
  std::vector<float> gain_;
  std::vector<float> bias_;
};

// y = u W for W [n_rows, n_cols]: the direction u in the residual stream as a direction in the
// heads' outputs. Row by row of W, so that the inner loop runs along memory.
void directions_in_heads(std::span<const float> u, std::span<const float> w, std::span<float> y) {
  constexpr size_t kLanes = 16;
  const size_t n_cols = y.size();
  std::ranges::fill(y, 0.0F);
  for (size_t i = 0; i < u.size(); ++i) {
    const float* row = w.data() + i * n_cols;
    size_t j = 0;
    for (; j + kLanes <= n_cols; j += kLanes) {
      for (size_t lane = 0; lane < kLanes; ++lane) y[j + lane] += u[i] * row[j + lane];
    }
    for (; j < n_cols; ++j) y[j] += u[i] * row[j];
  }
}

// The part of head h is z^h . (W_O^h)^T u, a product of head_dim numbers, once u is turned into the
// head's own space. That costs d_model * n_heads * head_dim products for each logit, as much as the
// output projection itself, and not n_heads times as much.
//
// One layer's parts of each wanted logit, whose direction is `directions[i]`.
class LayerParts {
 public:
  LayerParts(const Model& model, const ProbeExecutor& probe, int64_t layer)
      : spec_(model.spec()), layer_(layer) {
    const WeightSource& source =
        probe.source(model.weights().blocks[static_cast<size_t>(layer)].wo);
    const StoredRows rows(source);
    for (int64_t i = 0; i < source.tensor.shape.rows(); ++i) {
      const std::vector<float> row = decoded_row(source, rows, i);
      wo_.insert(wo_.end(), row.begin(), row.end());
    }
  }

  void add(const StreamParts& parts, int64_t row, std::span<const float> u,
           Attribution& attribution) const {
    const auto layer = static_cast<size_t>(layer_);
    const int64_t width = spec_.n_heads * spec_.head_dim;
    std::vector<float> in_heads(static_cast<size_t>(width));
    directions_in_heads(u, wo_, in_heads);
    const auto z = row_of(parts.heads[layer], row, width);
    double of_heads = 0;
    for (int64_t head = 0; head < spec_.n_heads; ++head) {
      const double part =
          dot(row_of(z, head, spec_.head_dim), row_of(in_heads, head, spec_.head_dim));
      attribution.heads[static_cast<size_t>(layer_ * spec_.n_heads + head)] =
          static_cast<float>(part);
      of_heads += part;
    }
    const double attended = dot(row_of(parts.attention[layer], row, spec_.d_model), u);
    attribution.attention_rest[layer] = static_cast<float>(attended - of_heads);
    attribution.mlps[layer] =
        static_cast<float>(dot(row_of(parts.mlps[layer], row, spec_.d_model), u));
  }

 private:
  const DecoderSpec& spec_;
  int64_t layer_;
  std::vector<float> wo_;  // [d_model, n_heads * head_dim]
};

}  // namespace

double Attribution::sum() const {
  double sum = embedding + norm_bias;
  for (const auto* parts : {&heads, &attention_rest, &mlps})
    sum = std::accumulate(parts->begin(), parts->end(), sum);
  return sum;
}

std::vector<Attribution> attribute(const Model& model, const ProbeExecutor& probe,
                                   const StreamParts& parts, std::span<const WantedLogit> wanted,
                                   int n_threads) {
  const DecoderSpec& spec = model.spec();
  const Readout readout(model, probe);
  std::vector<Attribution> attributions;
  std::vector<std::vector<float>> directions;
  for (const WantedLogit& want : wanted) {
    Attribution attribution;
    attribution.position = want.position;
    attribution.token = want.token;
    attribution.logit = want.logit;
    const auto layers = static_cast<size_t>(spec.n_layers);
    attribution.heads.resize(layers * static_cast<size_t>(spec.n_heads));
    attribution.attention_rest.resize(layers);
    attribution.mlps.resize(layers);
    directions.push_back(readout.direction(want.token, row_of(parts.stream, want.row, spec.d_model),
                                           attribution.norm_bias));
    attribution.embedding = dot(row_of(parts.embedding, want.row, spec.d_model), directions.back());
    attributions.push_back(std::move(attribution));
  }
  ThreadPool pool(n_threads);
  for (int64_t layer = 0; layer < spec.n_layers; ++layer) {
    const LayerParts of_layer(model, probe, layer);
    pool.for_ranges(std::ssize(wanted), 1, [&](int64_t begin, int64_t end, int /*thread*/) {
      for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i)
        of_layer.add(parts, wanted[i].row, directions[i], attributions[i]);
    });
  }
  return attributions;
}

}  // namespace limpid
