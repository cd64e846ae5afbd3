#include "model/model.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "base/check.h"
#include "layouts/lora_adapter.h"
#include "model/decoder_from_checkpoint.h"

namespace limpid {

Model::Model(std::shared_ptr<const Checkpoint> checkpoint, std::unique_ptr<Executor> executor)
    : checkpoint_(std::move(checkpoint)), executor_(std::move(executor)) {}

std::unique_ptr<Model> Model::load(std::shared_ptr<const Checkpoint> checkpoint,
                                   std::unique_ptr<Executor> executor, const LoadOptions& options) {
  std::unique_ptr<Model> model(new Model(std::move(checkpoint), std::move(executor)));
  model->spec_ = read_spec(*model->checkpoint_);
  model->n_ctx_ = options.n_ctx > 0 ? options.n_ctx : model->spec_.n_ctx_train;
  model->n_adapters_ = n_lora_adapters(*model->checkpoint_);
  check_context(model->spec_, model->n_ctx_);
  model->weights_ = load_weights(*model->checkpoint_, model->spec_, *model->executor_,
                                 options.progress, options.first_layer_in_file);
  if (model->spec_.position == PositionKind::kRope) {
    std::vector<double> frequencies = model->spec_.rope.inverse_frequencies;
    frequencies.resize(static_cast<size_t>(n_loaded_angles(model->spec_) / 2), 0.0);
    model->weights_.rope = model->executor_->load_rope(frequencies, model->n_ctx_);
  }
  return model;
}

int64_t n_loaded_angles(const DecoderSpec& spec) {
  return spec.row_order == RowOrder::kInterleavedPairs
             ? spec.head_dim
             : 2 * std::ssize(spec.rope.inverse_frequencies);
}

void check_context(const DecoderSpec& spec, int64_t n_ctx) {
  LIMPID_CHECK(ArgumentError, spec.position == PositionKind::kRope || n_ctx <= spec.n_ctx_train,
               "a context of {} tokens was requested, but the model has only {} learned positions",
               n_ctx, spec.n_ctx_train);
}

std::unique_ptr<KvCache> Model::make_cache(int64_t n_positions, DType k_dtype, DType v_dtype) {
  const KvLayout layout{spec_.n_layers, spec_.n_kv_heads, spec_.head_dim, 0, k_dtype, v_dtype};
  return std::make_unique<KvCache>(*executor_, layout, n_positions);
}

std::unique_ptr<KvCache> Model::make_cache_for_one(int64_t n_tokens, DType k_dtype, DType v_dtype) {
  if (n_tokens > n_ctx_) throw ContextOverflowError(n_tokens, n_ctx_);
  return make_cache(n_tokens, k_dtype, v_dtype);
}

namespace {

// Checks a step before anything changes: ids in range, each sequence at most once and not too long.
void check_items(const KvCache& cache, std::span<const StepItem> items, int64_t vocab_size,
                 int64_t n_ctx) {
  std::unordered_set<SequenceId> seen;
  for (const StepItem& item : items) {
    LIMPID_CHECK(ArgumentError, seen.insert(item.sequence).second,
                 "sequence {} occurs twice in one step", item.sequence);
    for (const int32_t id : item.tokens) {
      LIMPID_CHECK(ArgumentError, id >= 0 && id < vocab_size,
                   "token id {} is not in the vocabulary [0, {})", id, vocab_size);
    }
    const int64_t length = cache.length(item.sequence) + static_cast<int64_t>(item.tokens.size());
    if (length > n_ctx) throw ContextOverflowError(length, n_ctx);
  }
}

// Appends the tokens of an item to the inputs of a step: id, position, index of the sequence, and,
// if the token's logits are requested, its row.
void append_item(StepInputs& inputs, const StepItem& item, KvCache& cache, int32_t sequence_index) {
  const auto n_tokens = static_cast<int64_t>(item.tokens.size());
  const int64_t first_position = cache.length(item.sequence);
  for (int64_t i = 0; i < n_tokens; ++i) {
    const bool wanted = item.outputs == StepItem::Outputs::kAll ||
                        (item.outputs == StepItem::Outputs::kLast && i + 1 == n_tokens);
    if (wanted) inputs.output_rows.push_back(static_cast<int32_t>(inputs.n_tokens()));
    inputs.token_ids.push_back(item.tokens[i]);
    inputs.positions.push_back(static_cast<int32_t>(first_position + i));
    inputs.sequences.push_back(sequence_index);
  }
  const std::span<const int32_t> blocks = cache.blocks(item.sequence);
  inputs.block_table.insert(inputs.block_table.end(), blocks.begin(), blocks.end());
  inputs.block_table_begin.push_back(static_cast<int32_t>(inputs.block_table.size()));
}

// At the end of a step, normal or by an exception, truncates each sequence to the positions that it
// has stored, unless `keep` was called. A failed step therefore leaves the cache as it was.
class UnusedBlocks {
 public:
  UnusedBlocks(KvCache& cache, std::span<const StepItem> items) : cache_(cache), items_(items) {}
  UnusedBlocks(const UnusedBlocks&) = delete;
  UnusedBlocks& operator=(const UnusedBlocks&) = delete;
  void keep() { items_ = {}; }
  ~UnusedBlocks() {
    for (auto item = items_.rbegin(); item != items_.rend(); ++item)
      cache_.truncate(item->sequence, cache_.length(item->sequence));
  }

 private:
  KvCache& cache_;
  std::span<const StepItem> items_;
};

}  // namespace

// The order matters for exceptions: everything that can fail (checks, blocks, memory, the pass
// itself) happens before `advance` counts the new positions. Until then the cache is unchanged,
// except for reserved blocks, which UnusedBlocks releases.
void Model::run_step(KvCache& cache, std::span<const StepItem> items, const StepOptions& options,
                     int64_t end, const std::function<void(Activation result)>& take) {
  check_items(cache, items, spec_.vocab_size, n_ctx_);
  const std::span<const double> factors = options.adapter_factors;
  LIMPID_CHECK(ArgumentError, factors.empty() || std::ssize(factors) == n_adapters_,
               "the model has {} adapters, and {} factors were given", n_adapters_, factors.size());
  const LayerRange layers{options.paused != nullptr ? options.paused->n_layers : 0, end};
  UnusedBlocks given_back_at_the_end(cache, items);
  for (const StepItem& item : items)
    cache.reserve(item.sequence, static_cast<int64_t>(item.tokens.size()));

  StepInputs& inputs = executor_->inputs();
  inputs.clear();
  inputs.block_table_begin.push_back(0);
  for (size_t i = 0; i < items.size(); ++i)
    append_item(inputs, items[i], cache, static_cast<int32_t>(i));
  if (inputs.n_tokens() == 0) return;

  make_room(inputs.n_tokens(), inputs.n_outputs());
  const auto run = [&] {
    const ExecutorStep step(*executor_);
    Activation stream;
    if (layers.begin > 0)
      stream = executor_->write(options.paused->stream, inputs.n_tokens(), spec_.d_model);
    return forward(*executor_, spec_, weights_, cache.storage(), options.result, factors, layers,
                   std::move(stream));
  };
  take(run());
  if (end < spec_.n_layers) return given_back_at_the_end.keep();
  for (const StepItem& item : items) cache.advance(item.sequence, item.tokens);
}

std::span<const float> Model::step(KvCache& cache, std::span<const StepItem> items,
                                   const StepOptions& options) {
  std::span<const float> values;
  run_step(cache, items, options, spec_.n_layers, [&](Activation y) {
    values = executor_->view(y);
    if (!values.empty()) {
      result_ = std::move(y);
      return;
    }
    copied_.resize(static_cast<size_t>(y.rows() * y.cols()));
    executor_->read(y, copied_);
    values = copied_;
  });
  return values;
}

void Model::step_layers(KvCache& cache, std::span<const StepItem> items, int64_t n_layers,
                        PausedStep& paused, std::span<const double> adapter_factors) {
  const int64_t end = paused.n_layers + n_layers;
  LIMPID_CHECK(ArgumentError, 0 < n_layers && end < spec_.n_layers,
               "{} layers after {} of {} are not a part without the last layer", n_layers,
               paused.n_layers, spec_.n_layers);
  const auto keep_stream = [&](const Activation& x) {
    paused.stream.resize(static_cast<size_t>(x.rows() * x.cols()));
    executor_->read(x, paused.stream);
  };
  run_step(cache, items, {PassResult::kHidden, adapter_factors, &paused}, end, keep_stream);
  paused.n_layers = end;
}

Model::BestLogits Model::step_best(KvCache& cache, std::span<const StepItem> items, int64_t n,
                                   const StepOptions& options) {
  copied_.clear();
  best_ids_.clear();
  run_step(cache, items, options, spec_.n_layers, [&](const Activation& y) {
    copied_.resize(static_cast<size_t>(y.rows() * n));
    best_ids_.resize(copied_.size());
    executor_->read_best(y, n, best_ids_, copied_);
  });
  return {n, best_ids_, copied_};
}

// A step without attention: its tokens are never looked up.
void Model::read_out(std::span<const float> streams, const SeePart& see) {
  const auto n = static_cast<int64_t>(streams.size()) / spec_.d_model;
  LIMPID_CHECK(ShapeError, n * spec_.d_model == static_cast<int64_t>(streams.size()),
               "{} elements are not a whole number of rows of {}", streams.size(), spec_.d_model);
  executor_->inputs().clear();
  make_room(n, n);
  const ExecutorStep step(*executor_);
  limpid::read_out(*executor_, spec_, weights_, executor_->write(streams, n, spec_.d_model), see);
}

// Room only grows: a step of one token after a long prompt does not release the buffers. The room
// is for one step, so the result of the last step is dropped.
void Model::make_room(int64_t n_tokens, int64_t n_outputs) {
  result_ = Activation();
  if (n_tokens <= room_tokens_ && n_outputs <= room_outputs_) return;
  const int64_t most_tokens = std::max(n_tokens, room_tokens_);
  const int64_t most_outputs = std::max(n_outputs, room_outputs_);
  executor_->reserve(most_tokens, most_outputs);
  room_tokens_ = most_tokens;
  room_outputs_ = most_outputs;
}

}  // namespace limpid
