// One evaluation of the text, chunk by chunk. A chunk of c tokens runs as a step whose activations
// are looked at as they come; what is needed when the step is done is kept until then:
//
//   query, key of a layer    -> attention weights of the chunk's rows, kept as AttentionMap
//   outputs, residual stream -> norms (activation_sizes.h) and parts of the logits
//                               (attribution.h), at once
//   residual stream          -> the logits and the logit lens, when the step is done: no memory
//                               holds the logits of a chunk (Model::read_out, LogitReader)
//   hidden layer of the MLP  -> the largest value of each neuron
//
// Results do not depend on the chunks: an executor gives the same bits for any chunking.
#include <algorithm>
#include <limits>

#include "base/check.h"
#include "base/thread_pool.h"
#include "insight/explanation.h"
#include "insight/row_kernels.h"
#include "model/decoder.h"

namespace limpid {
namespace {

constexpr int64_t kRowsPerThread = 16;
// Rows of a head whose weights are computed together. More would compute more scores above the
// diagonal.
constexpr int64_t kAttentionRows = 64;

}  // namespace

class Explainer::Work {
 public:
  Work(Model& model, ProbeExecutor& probe, std::vector<int32_t> ids, const ExplainOptions& options)
      : model_(model),
        probe_(probe),
        spec_(model.spec()),
        ids_(std::move(ids)),
        copies_(earlier_copies(ids_)),
        options_(options),
        own_pool_(probe.threads() != nullptr ? nullptr : std::make_unique<ThreadPool>(0)),
        pool_(own_pool_ ? *own_pool_ : *probe.threads()),
        n_tokens_(std::ssize(ids_)) {
    LIMPID_CHECK(ArgumentError, n_tokens_ > 0, "no tokens to explain");
    if (n_tokens_ > model.n_ctx()) throw ContextOverflowError(n_tokens_, model.n_ctx());
    // Before the step, which checks them too: directions of their logits are read first.
    for (const int32_t token : ids_)
      LIMPID_CHECK(ArgumentError, token >= 0 && token < spec_.vocab_size,
                   "token id {} is not in the vocabulary [0, {})", token, spec_.vocab_size);
    for (const int32_t token : {options.token, options.against})
      LIMPID_CHECK(ArgumentError, token < spec_.vocab_size,
                   "no token {}: the vocabulary has {} tokens", token, spec_.vocab_size);
    const int64_t n_heads = spec_.n_layers * spec_.n_heads;
    result_.token_ids = ids_;
    result_.n_prompt = options.n_prompt > 0 ? options.n_prompt : n_tokens_;
    result_.n_layers = spec_.n_layers;
    result_.n_heads = spec_.n_heads;
    result_.surprise.assign(1, std::numeric_limits<double>::quiet_NaN());
    const int64_t n_kept = std::max<int64_t>(1, options.most_attention / (n_heads * n_tokens_));
    result_.attention.assign(size_of(n_heads), AttentionMap(n_tokens_, n_kept));
    for (int64_t layer = -1; layer < spec_.n_layers; ++layer) {
      if (layer == spec_.n_layers - 1 || (layer + 1) % options.lens_every == 0)
        result_.lens.push_back({layer, {}});
    }
    n_lens_best_ = std::clamp<int64_t>(options.most_lens / (n_tokens_ * std::ssize(result_.lens)),
                                       1, options.n_lens_best);
    const int64_t n_parts = 2 + spec_.n_layers * (spec_.n_heads + 2);
    const int64_t n_attributed = options.n_attributed >= 0
                                     ? options.n_attributed
                                     : std::max<int64_t>(1, options.most_parts / n_parts);
    first_attributed_ = n_tokens_ - std::min(n_tokens_, n_attributed);
    make_room();
    attention_room_.resize(size_of(pool_.size()));
  }

  bool advance() {
    if (end_ == n_tokens_) return false;
    if (!cache_) {
      cache_ = model_.make_cache(n_tokens_, DType::kF32, DType::kF32);
      sequence_ = cache_->add_sequence();
    }
    begin_ = end_;
    end_ = std::min(begin_ + options_.n_batch, n_tokens_);
    const StepItem item{sequence_, std::span(ids_).subspan(size_of(begin_), size_of(end_ - begin_)),
                        StepItem::Outputs::kNone};
    sizes_.begin(end_ - begin_);
    begin_attribution();
    const Observing watch(
        probe_,
        PlaceSet(Place::kEmbedding, Place::kQuery, Place::kKey, Place::kAttnHeads,
                 Place::kAttnOutput, Place::kFfnHidden, Place::kFfnOutput, Place::kFfnResidual),
        [this](Place place, int64_t layer, std::span<const float> values) {
          see(place, layer, values);
        });
    model_.step(*cache_, {&item, 1});
    add_predictions();
    for (LensLayer& lens : result_.lens) add_lens(lens);
    if (options_.progress && !options_.progress(end_, n_tokens_))
      throw ResourceError("explaining was cancelled");
    return end_ < n_tokens_;
  }

  Explanation take() {
    result_.norms = sizes_.take();
    return std::move(result_);
  }

 private:
  enum Wanted : int64_t { kFollowing, kAttributed, kAgainst };  // logits that a row keeps

  void make_room() {
    const int64_t n_batch = std::min(options_.n_batch, n_tokens_);
    query_ = LayerRows(1, n_batch * spec_.n_heads * spec_.head_dim, pool_);
    keys_ = LayerRows(spec_.n_layers, n_tokens_ * spec_.n_kv_heads * spec_.head_dim, pool_);
    streams_ = LayerRows(spec_.n_layers + 1, n_batch * spec_.d_model, pool_);
  }

  void see(Place place, int64_t layer, std::span<const float> values) {
    const auto keep = [&](LayerRows& rows, size_t of) {
      rows.clear(of);
      rows.append(of, values, pool_);
    };
    sizes_.see(place, layer, values);
    switch (place) {
      case Place::kQuery:
        return keep(query_, 0);
      case Place::kKey:
        keys_.append(size_of(layer), values, pool_);
        return add_attention(layer);
      case Place::kFfnResidual:
        return keep(streams_, size_of(layer + 1));
      case Place::kEmbedding:
        keep(streams_, 0);
        [[fallthrough]];
      case Place::kAttnHeads:
      case Place::kAttnOutput:
      case Place::kFfnOutput:
        return attributor_.see(place, layer, attributed(values));
      default:
        return;
    }
  }

  int64_t n_not_attributed() const {
    return std::clamp<int64_t>(first_attributed_ - begin_, 0, end_ - begin_);
  }

  // Of an activation of the chunk: the rows whose logits are attributed.
  std::span<const float> attributed(std::span<const float> values) const {
    return values.subspan(size_of(std::ssize(values) / (end_ - begin_) * n_not_attributed()));
  }

  // Logits after token t predict token t + 1; what follows the last token is known after the step.
  void begin_attribution() {
    following_.assign(ids_.begin() + begin_ + 1, ids_.begin() + std::min(end_ + 1, n_tokens_));
    following_.resize(size_of(end_ - begin_), -1);
    attributed_ = following_;
    if (options_.token >= 0) std::ranges::fill(attributed_, options_.token);
    attributor_.begin(std::span(attributed_).subspan(size_of(n_not_attributed())));
  }

  // The executor computes attention block by block and keeps no weights, so they are computed once
  // more from its queries and keys. Query heads that share a key head read the same keys. Each
  // head's rows go to its own map, so heads are shared out among threads.
  void add_attention(int64_t layer) {
    const float* queries = query_[0].data();
    const float* keys = keys_[size_of(layer)].data();
    const int64_t width = spec_.n_heads * spec_.head_dim;
    const int64_t stride = spec_.n_kv_heads * spec_.head_dim;
    const float scale = attention_scale(spec_, layer);
    pool_.for_ranges(spec_.n_heads, 1, [&](int64_t from, int64_t to, int thread) {
      auto& [scratch, weights] = attention_room_[size_of(thread)];
      weights.resize(size_of(kAttentionRows * end_));
      for (int64_t head = from; head < to; ++head) {
        const int64_t kv_head = head / (spec_.n_heads / spec_.n_kv_heads);
        AttentionMap& map = result_.attention[size_of(layer * spec_.n_heads + head)];
        for (int64_t begin = begin_; begin < end_; begin += kAttentionRows) {
          const int64_t end = std::min(begin + kAttentionRows, end_);
          attention_weights(
              {queries + (begin - begin_) * width + head * spec_.head_dim, width, end - begin,
               keys + kv_head * spec_.head_dim, stride, spec_.head_dim, begin, scale},
              scratch, weights);
          for (int64_t t = begin; t < end; ++t)
            map.add_row(row_of(weights, t - begin, end).first(size_of(t + 1)), copies_);
        }
      }
    });
  }

  // What the output matrix says of the streams after a layer, added to `to`.
  void read_out(int64_t layer, int64_t n_best, std::vector<int32_t> wanted,
                std::vector<Prediction>& to) {
    reader_.begin(end_ - begin_, n_best, std::move(wanted));
    model_.read_out(streams_[size_of(layer + 1)],
                    [&](const ColumnPart& part) { reader_.see(part); });
    const auto first = std::ssize(to);
    to.resize(size_of(first + end_ - begin_));
    pool_.for_each(end_ - begin_, kRowsPerThread,
                   [&](int64_t i) { to[size_of(first + i)] = reader_.prediction(i); });
  }

  // Logits after token t predict token t + 1, so its surprise is known where the text goes on:
  // -log p = log sum e^l - l of that token.
  void add_predictions() {
    std::vector<int32_t> tokens;  // kFollowing, kAttributed and kAgainst of each row
    for (int64_t i = 0; i < end_ - begin_; ++i)
      tokens.insert(tokens.end(),
                    {following_[size_of(i)], attributed_[size_of(i)], options_.against});
    read_out(spec_.n_layers - 1, options_.n_best, std::move(tokens), result_.next);
    std::vector<WantedLogit> wanted;
    for (int64_t t = begin_; t < end_; ++t) {
      if (t + 1 < n_tokens_) {
        const double logit = reader_.wanted_logit(t - begin_, kFollowing);
        result_.surprise.push_back(surprise(logit - result_.next[size_of(t)].log_sum_exp));
      }
      if (t >= first_attributed_) wanted.push_back(wanted_logit(t));
    }
    std::ranges::move(attributor_.end(attributed(streams_[size_of(spec_.n_layers)]), wanted),
                      std::back_inserter(result_.parts));
  }

  WantedLogit wanted_logit(int64_t t) const {
    const int64_t i = t - begin_;
    WantedLogit wanted{t, attributed_[size_of(i)], reader_.wanted_logit(i, kAttributed)};
    if (wanted.token < 0) {
      wanted.token = result_.next[size_of(t)].likeliest.front().id;
      wanted.logit = reader_.largest_logit(i);
    }
    if (options_.against >= 0) wanted.logit -= reader_.wanted_logit(i, kAgainst);
    return wanted;
  }

  // The last layer says what the model says.
  void add_lens(LensLayer& lens) {
    if (lens.layer < spec_.n_layers - 1)
      return read_out(lens.layer, n_lens_best_, {}, lens.predictions);
    for (int64_t t = begin_; t < end_; ++t) {
      Prediction& last = lens.predictions.emplace_back(result_.next[size_of(t)]);
      last.likeliest.resize(std::min(last.likeliest.size(), size_of(n_lens_best_)));
    }
  }

  Model& model_;
  ProbeExecutor& probe_;
  const DecoderSpec& spec_;
  const std::vector<int32_t> ids_;
  const std::vector<int32_t> copies_;  // earlier_copies of the text
  const ExplainOptions options_;
  const std::unique_ptr<ThreadPool> own_pool_;  // beside an executor without threads
  ThreadPool& pool_;
  int64_t n_tokens_;
  int64_t first_attributed_ = 0;
  int64_t n_lens_best_ = 1;
  Explanation result_;
  std::unique_ptr<KvCache> cache_;
  SequenceId sequence_ = 0;

  int64_t begin_ = 0;  // the chunk: tokens [begin_, end_)
  int64_t end_ = 0;
  struct AttentionRoom {
    std::vector<float> scratch;
    std::vector<float> weights;
  };
  LogitReader reader_{spec_.vocab_size};
  std::vector<AttentionRoom> attention_room_;  // of each thread
  LayerRows query_;                            // one layer, the one in progress
  LayerRows keys_;                             // of all tokens so far
  LayerRows streams_;                          // of the chunk: the embedding, and after each block
  // For each token of the chunk, or -1 where it is not known before the step:
  std::vector<int32_t> following_;   // the token after it
  std::vector<int32_t> attributed_;  // the token whose logit is attributed
  ActivationSizes sizes_{spec_.n_layers, pool_};
  Attributor attributor_{model_, probe_, pool_, options_.against};
};

Explainer::Explainer(Model& model, ProbeExecutor& probe, std::vector<int32_t> token_ids,
                     const ExplainOptions& options)
    : work_(std::make_unique<Work>(model, probe, std::move(token_ids), options)) {}
Explainer::~Explainer() = default;
bool Explainer::advance() { return work_->advance(); }
Explanation Explainer::take() { return work_->take(); }

Explanation explain(Model& model, ProbeExecutor& probe, std::span<const int32_t> token_ids,
                    const ExplainOptions& options) {
  Explainer explainer(model, probe, {token_ids.begin(), token_ids.end()}, options);
  while (explainer.advance()) {
  }
  return explainer.take();
}

}  // namespace limpid
