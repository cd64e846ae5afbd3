#include "insight/attribution.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.h"
#include "executor/cpu/isa.h"
#include "executor/cpu/matrix_product.h"
#include "insight/row_kernels.h"
#include "tensor/codec.h"

namespace limpid {
namespace {

std::span<const float> row_of(std::span<const float> values, int64_t row, int64_t n_cols) {
  return values.subspan(static_cast<size_t>(row * n_cols), static_cast<size_t>(n_cols));
}

// One row of a matrix of any type as f32: of the output matrix, the w_v of one token.
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
    norm_bias = bias_.empty() ? 0 : dot_f64(u, bias_);
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

// The part of head h is z^h . (W_O^h)^T u, a product of head_dim numbers, once u is turned into the
// head's own space. That costs d_model * n_heads * head_dim products for each logit, as much as the
// output projection itself, and not n_heads times as much. All directions are turned together, by
// one product of matrices: [n, d_model] [d_model, n_heads * head_dim].
class LayerParts {
 public:
  LayerParts(const Model& model, const ProbeExecutor& probe, ThreadPool& pool)
      : model_(model),
        probe_(probe),
        spec_(model.spec()),
        pool_(pool),
        width_(spec_.n_heads * spec_.head_dim),
        wo_(static_cast<size_t>(spec_.d_model * width_)),
        scratch_(static_cast<size_t>(multiply_scratch_floats(pool.size()))) {}

  // One layer's parts of each logit; `directions` is [attributions.size(), d_model].
  void add(int64_t layer, const StreamParts& parts, std::span<const float> directions,
           std::span<Attribution> attributions) {
    decode(layer);
    in_heads_.resize(attributions.size() * static_cast<size_t>(width_));
    MatrixProduct product;
    product.right = wo_.data();
    product.right_stride = product.cols = width_;
    product.y = in_heads_.data();
    multiply(*choose_isa("").kernels, pool_,
             {directions.data(), spec_.d_model, std::ssize(attributions), spec_.d_model},
             {&product, 1}, scratch_.data());
    pool_.for_ranges(std::ssize(attributions), 1, [&](int64_t begin, int64_t end, int /*thread*/) {
      for (int64_t i = begin; i < end; ++i)
        add(static_cast<size_t>(layer), parts, i, row_of(directions, i, spec_.d_model),
            row_of(in_heads_, i, width_), attributions[static_cast<size_t>(i)]);
    });
  }

 private:
  // The output projection of the layer as f32 [d_model, width], whatever its type. Its column j
  // says where element j of the heads goes in the residual stream.
  void decode(int64_t layer) {
    const WeightSource& source =
        probe_.source(model_.weights().blocks[static_cast<size_t>(layer)].wo);
    const StoredRows rows(source);
    pool_.for_ranges(spec_.d_model, 16, [&](int64_t begin, int64_t end, int /*thread*/) {
      for (int64_t i = begin; i < end; ++i)
        decode_row(
            source.tensor.dtype, rows.row(i),
            std::span(wo_).subspan(static_cast<size_t>(i * width_), static_cast<size_t>(width_)));
    });
  }

  // What attention added to the stream is known, and so is its product with u. What the heads do
  // not explain of it is the rest: biases, low-rank updates, rounding.
  void add(size_t layer, const StreamParts& parts, int64_t row, std::span<const float> u,
           std::span<const float> in_heads, Attribution& attribution) const {
    const auto z = row_of(parts.heads[layer], row, width_);
    double of_heads = 0;
    for (int64_t head = 0; head < spec_.n_heads; ++head) {
      const double part =
          dot_f64(row_of(z, head, spec_.head_dim), row_of(in_heads, head, spec_.head_dim));
      attribution.heads[layer * static_cast<size_t>(spec_.n_heads) + static_cast<size_t>(head)] =
          static_cast<float>(part);
      of_heads += part;
    }
    const double attended = dot_f64(row_of(parts.attention[layer], row, spec_.d_model), u);
    attribution.attention_rest[layer] = static_cast<float>(attended - of_heads);
    attribution.mlps[layer] =
        static_cast<float>(dot_f64(row_of(parts.mlps[layer], row, spec_.d_model), u));
  }

  const Model& model_;
  const ProbeExecutor& probe_;
  const DecoderSpec& spec_;
  ThreadPool& pool_;
  int64_t width_;
  std::vector<float> wo_;        // [d_model, width], of the layer in progress
  std::vector<float> in_heads_;  // [n, width]
  std::vector<float> scratch_;
};

}  // namespace

double Attribution::sum() const {
  double sum = embedding + norm_bias + rounding;
  for (const auto* parts : {&heads, &attention_rest, &mlps})
    sum = std::accumulate(parts->begin(), parts->end(), sum);
  return sum;
}

LayerRows::LayerRows(int64_t n_layers, int64_t most_numbers, ThreadPool& pool)
    : most_numbers_(static_cast<size_t>(most_numbers)),
      room_(static_cast<size_t>(n_layers) * most_numbers_ * sizeof(float)),
      sizes_(static_cast<size_t>(n_layers)) {
  constexpr int64_t kPage = 4096 / sizeof(float);
  constexpr int64_t kTouchedAtOnce = (2 << 20) / sizeof(float);
  const std::span<float> room = room_.as<float>();
  pool.for_ranges(std::ssize(room), kTouchedAtOnce, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; i += kPage) room[static_cast<size_t>(i)] = 0;
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

StreamParts::StreamParts(const DecoderSpec& spec, int64_t most_rows, ThreadPool& pool)
    : embedding(1, most_rows * spec.d_model, pool),
      heads(spec.n_layers, most_rows * spec.n_heads * spec.head_dim, pool),
      attention(spec.n_layers, most_rows * spec.d_model, pool),
      mlps(spec.n_layers, most_rows * spec.d_model, pool),
      stream(1, most_rows * spec.d_model, pool) {}

void StreamParts::clear() {
  for (LayerRows* rows : {&embedding, &heads, &attention, &mlps, &stream}) rows->clear();
}

std::vector<Attribution> attribute(const Model& model, const ProbeExecutor& probe,
                                   const StreamParts& parts, std::span<const WantedLogit> wanted,
                                   ThreadPool& pool) {
  const DecoderSpec& spec = model.spec();
  const auto layers = static_cast<size_t>(spec.n_layers);
  const Readout readout(model, probe);
  std::vector<Attribution> attributions(wanted.size());
  std::vector<float> directions(wanted.size() * static_cast<size_t>(spec.d_model));
  const auto begin_one = [&](int64_t i) {
    const WantedLogit& want = wanted[static_cast<size_t>(i)];
    Attribution& attribution = attributions[static_cast<size_t>(i)];
    attribution.position = want.position;
    attribution.token = want.token;
    attribution.logit = want.logit;
    attribution.heads.resize(layers * static_cast<size_t>(spec.n_heads));
    attribution.attention_rest.resize(layers);
    attribution.mlps.resize(layers);
    const auto stream = row_of(parts.stream[0], i, spec.d_model);
    const std::vector<float> u = readout.direction(want.token, stream, attribution.norm_bias);
    attribution.rounding = want.logit - (dot_f64(stream, u) + attribution.norm_bias);
    attribution.embedding = dot_f64(row_of(parts.embedding[0], i, spec.d_model), u);
    std::ranges::copy(u, directions.begin() + i * spec.d_model);
  };
  pool.for_ranges(std::ssize(wanted), 16, [&](int64_t begin, int64_t end, int /*thread*/) {
    for (int64_t i = begin; i < end; ++i) begin_one(i);
  });
  LayerParts of_layer(model, probe, pool);
  for (int64_t layer = 0; layer < spec.n_layers; ++layer)
    of_layer.add(layer, parts, directions, attributions);
  return attributions;
}

}  // namespace limpid
