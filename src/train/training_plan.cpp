#include "train/training_plan.h"

#include <fmt/format.h>

#include <memory>
#include <set>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/checked.h"
#include "base/divide_up.h"
#include "base/system_limits.h"
#include "executor/executor.h"
#include "model/decoder.h"
#include "model/decoder_from_checkpoint.h"
#include "train/counting_executor.h"
#include "train/tape.h"
#include "train/training_model.h"

namespace limpid {
namespace {

// Returns the copy that learns (copy_to_f32), without its values.
Checkpoint f32_shapes(const Checkpoint& shapes) {
  Checkpoint copy = shapes;
  copy.row_order = RowOrder::kHalfSplit;
  copy.derived.clear();
  for (auto& [name, view] : copy.tensors) view = TensorView{DType::kF32, view.shape, nullptr};
  return copy;
}

// Returns the tokens of one micro-batch and of one step. Settings may ask for any number.
std::pair<int64_t, int64_t> tokens_of(const TrainingOptions& options) {
  const auto tokens = checked_mul(static_cast<uint64_t>(options.batch_size),
                                  static_cast<uint64_t>(options.seq_len));
  const auto all =
      tokens ? checked_mul(*tokens, static_cast<uint64_t>(options.grad_accum)) : tokens;
  LIMPID_CHECK(ArgumentError, all && checked_cast<int32_t>(*tokens) && checked_cast<int64_t>(*all),
               "a step of {} batches of {} sequences of {} tokens is too large", options.grad_accum,
               options.batch_size, options.seq_len);
  return {static_cast<int64_t>(*tokens), static_cast<int64_t>(*all)};
}

// One step on a tape around an executor that counts.
void count_step(const Checkpoint& f32, const DecoderSpec& spec, const TrainingOptions& options,
                TrainingPlan& plan) {
  const int64_t n_tokens = tokens_of(options).first;
  auto counting = std::make_unique<CountingExecutor>(n_tokens, options.model.learns);
  const CountingExecutor& counts = *counting;
  Tape tape(std::move(counting), options.model.tape);
  tape.set_dropout({static_cast<float>(options.model.dropout)});
  DecoderWeights weights = load_weights(f32, spec, tape);
  if (spec.position == PositionKind::kRope)
    weights.rope = tape.load_rope(spec.rope.inverse_frequencies, spec.n_ctx_train);
  KvStorage no_cache{KvLayout{}};
  const ExecutorStep step(tape);
  const Activation logits = forward(tape, spec, weights, no_cache, PassResult::kLogits, {});
  tape.cross_entropy(logits, {}, {});
  tape.backward();
  plan.activations = counts.most_bytes();
  plan.operations_per_step = counts.operations() * static_cast<double>(options.grad_accum);
}

// Returns the number of gradients in memory, with what GradientSum keeps besides: a sum over
// rounds, and what ranks exchange.
int64_t n_gradients(int64_t n_learning, const TrainingOptions& options) {
  const int64_t n_ranks = options.ranks->size();
  int64_t n = n_learning;
  if (options.grad_accum > n_ranks) n += n_learning / n_ranks;
  return n_ranks > 1 ? n + n_learning : n;
}

}  // namespace

TrainingPlan make_training_plan(const Checkpoint& shapes, const TrainingOptions& options,
                                const DocumentView& documents, const DocumentView& held_out) {
  TrainingPlan plan;
  plan.available = available_memory();
  plan.n_tokens = documents.n_tokens();
  plan.n_held_out = held_out.n_tokens();
  plan.data = documents.n_bytes() + held_out.n_bytes();
  plan.n_steps = options.schedule.n_steps;
  const Checkpoint f32 = f32_shapes(shapes);
  const DecoderSpec spec = read_spec(f32);
  check_dropout(spec, options.model.dropout);
  std::set<std::string> projections;  // Muon keeps one running mean of them
  for (const TensorEntry& entry : tensor_table(f32, spec).entries) {
    if (entry.use == WeightUse::kProjection) projections.insert(entry.name);
  }
  int64_t n_moments = 0;
  int64_t n_in_matrices = 0;
  for (const auto& [name, view] : f32.tensors) {
    const int64_t n = view.shape.n_elements();
    plan.n_parameters += n;
    if (view.shape.rank() > 1) n_in_matrices += n;
    if (options.model.learns && !options.model.learns(name)) continue;
    plan.n_learning += n;
    const OptimizerKind kind = options.optimizer.kind;
    const bool has_one =
        kind == OptimizerKind::kSgd || (kind == OptimizerKind::kMuon && projections.contains(name));
    n_moments += has_one ? n : 2 * n;
  }
  LIMPID_CHECK(ArgumentError, plan.n_learning > 0, "all tensors are frozen; nothing would learn");
  const auto bytes_of = [](int64_t n) { return static_cast<uint64_t>(n) * sizeof(float); };
  plan.weights = bytes_of(plan.n_parameters);
  if (options.model.tape.dtype != DType::kF32) plan.weights += bytes_of(n_in_matrices) / 2;
  plan.gradients = bytes_of(n_gradients(plan.n_learning, options));
  plan.moments = bytes_of(n_moments);
  plan.n_processes = options.ranks->n_on_this_machine();
  plan.tokens_per_step = tokens_of(options).second;
  plan.tokens_per_epoch = (plan.n_tokens - 1) / options.seq_len * options.seq_len;
  plan.steps_per_epoch = divide_up(plan.tokens_per_epoch, plan.tokens_per_step);
  count_step(f32, spec, options, plan);
  return plan;
}

void check_training_plan(const TrainingPlan& plan) {
  const uint64_t wanted = plan.total() * static_cast<uint64_t>(plan.n_processes);
  if (plan.available == 0 || wanted <= plan.available) return;
  const auto gigabytes = [](uint64_t n_bytes) {
    return fmt::format("{:.2f} GB", static_cast<double>(n_bytes) / 1e9);
  };
  throw ResourceError(fmt::format(
      "training needs {} of memory{} (weights {}, gradients {}, moments {}, activations {}, data "
      "{}), but {} are available: {}",
      gigabytes(plan.total()),
      plan.n_processes > 1 ? fmt::format(" in each of {} processes", plan.n_processes) : "",
      gigabytes(plan.weights), gigabytes(plan.gradients), gigabytes(plan.moments),
      gigabytes(plan.activations), gigabytes(plan.data), gigabytes(plan.available),
      plan.activations > plan.total() / 2
          ? "take smaller batches and accumulate their gradients, or shorter sequences"
          : "take a smaller model, or train an adapter of it"));
}

}  // namespace limpid
