// A checkpoint's weights in an executor, with the spec that describes how to run them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "executor/executor.h"
#include "model/decoder.h"
#include "model/decoder_spec.h"
#include "model/kv_cache.h"

namespace limpid {

// Options of Model::load.
struct LoadOptions {
  int64_t n_ctx = 0;  // length of the longest sequence (rope table); 0: as trained
  int64_t first_layer_in_file = INT64_MAX;  // as in load_weights
  // Called from time to time with the bytes loaded so far and the total. Returning false cancels
  // the load (ResourceError).
  std::function<bool(uint64_t done, uint64_t total)> progress{};
};

// Throws ArgumentError with both numbers when the model has fewer than `n_ctx` learned positions.
void check_context(const DecoderSpec& spec, int64_t n_ctx);

// The elements of a head for which Model::load loads rotary angles: those that rotate, or the whole
// head. Loading moves interleaved pairs (2i, 2i + 1) of Q and K half a head apart, to (i, i +
// head_dim / 2). This holds even when only n_rot elements of a head rotate; the remaining pairs get
// frequency 0.
int64_t n_loaded_angles(const DecoderSpec& spec);

// Tokens of one sequence to run in a step. Their positions follow the positions that the cache
// holds.
struct StepItem {
  enum class Outputs : uint8_t { kNone, kLast, kAll };
  SequenceId sequence = 0;
  std::span<const int32_t> tokens;
  Outputs outputs = Outputs::kLast;
};

// A step of which some layers have been run (Model::step_layers).
struct PausedStep {
  int64_t n_layers = 0;
  std::vector<float> stream{};  // the residual stream after them, [tokens, d_model]
};

struct StepOptions {
  PassResult result = PassResult::kLogits;
  std::span<const double> adapter_factors{};  // see AdapterMix; empty, or one for each adapter
  const PausedStep* paused = nullptr;         // the step goes on from here
};

// Owns the checkpoint, the executor with its weights, and the spec. A model has no state of its own
// between steps; everything about a conversation is in a KvCache. One step runs at a time.
class Model {
 public:
  // Throws UnsupportedError (architecture, or a key or tensor that would change the result),
  // FormatError (a missing tensor or a wrong shape), ResourceError.
  static std::unique_ptr<Model> load(std::shared_ptr<const Checkpoint> checkpoint,
                                     std::unique_ptr<Executor> executor,
                                     const LoadOptions& options = {});

  const DecoderSpec& spec() const { return spec_; }
  const DecoderWeights& weights() const { return weights_; }
  const Checkpoint& checkpoint() const { return *checkpoint_; }
  Executor& executor() { return *executor_; }
  int64_t n_ctx() const { return n_ctx_; }

  // Creates a cache for `n_positions` positions in all sequences together. Each dtype is kF32 or
  // kF16.
  std::unique_ptr<KvCache> make_cache(int64_t n_positions, DType k_dtype = DType::kF16,
                                      DType v_dtype = DType::kF16);

  // The same for one sequence. Throws ContextOverflowError for one that is too long for a step,
  // before it allocates anything.
  std::unique_ptr<KvCache> make_cache_for_one(int64_t n_tokens, DType k_dtype, DType v_dtype);

  // Runs all items in one pass over the weights, stores their keys and values, and returns the
  // logits (or hidden states) of the requested tokens, in the order of the items: [n_outputs,
  // vocab_size] (or [n_outputs, d_model]). Each sequence may occur once. Throws ArgumentError for
  // ids outside the vocabulary, ContextOverflowError when a sequence or the cache would become too
  // long, ResourceError, and the executor's errors. A step that throws leaves the cache as it was.
  // The span is valid until the next step.
  std::span<const float> step(KvCache& cache, std::span<const StepItem> items,
                              const StepOptions& options = {});

  // The same step, but only the n best logits of each requested token are copied from the executor:
  // columns and values of Executor::read_best.
  struct BestLogits {
    int64_t n = 0;
    std::span<const int32_t> ids;   // [n_outputs, n]
    std::span<const float> logits;  // [n_outputs, n]
  };
  BestLogits step_best(KvCache& cache, std::span<const StepItem> items, int64_t n,
                       const StepOptions& options = {});

  // Runs the next `n_layers` layers of a step, but not the last one: `step` and `step_best` do the
  // rest if they get the same items. Meanwhile, steps of other sequences may run; the items' own
  // sequences must not change. The result is the same to the bit. The blocks for the new positions
  // stay reserved until the step is complete or KvCache::truncate gives them back. Throws what
  // `step` throws; the step must then begin anew.
  void step_layers(KvCache& cache, std::span<const StepItem> items, int64_t n_layers,
                   PausedStep& paused, std::span<const double> adapter_factors = {});

  // Applies the final norm and the output matrix to residual streams [n, d_model]. Shows logits [n,
  // vocab_size], as if the model ended there, in parts, as Executor::linear_in_parts does; for the
  // streams of the last layer they equal those of `step` bit for bit. Throws ShapeError and the
  // executor's errors.
  void read_out(std::span<const float> streams, const SeePart& see);

 private:
  Model(std::shared_ptr<const Checkpoint> checkpoint, std::unique_ptr<Executor> executor);
  void make_room(int64_t n_tokens, int64_t n_outputs);
  // Runs a step up to the layer `end`. `take` gets the result, or the residual stream before that
  // layer. It is not called for a step without tokens.
  void run_step(KvCache& cache, std::span<const StepItem> items, const StepOptions& options,
                int64_t end, const std::function<void(Activation result)>& take);

  std::shared_ptr<const Checkpoint> checkpoint_;
  std::unique_ptr<Executor> executor_;
  DecoderSpec spec_;
  DecoderWeights weights_;
  int64_t n_ctx_ = 0;
  int64_t n_adapters_ = 0;
  int64_t room_tokens_ = 0;  // the room that the executor has reserved
  int64_t room_outputs_ = 0;
  Activation result_;          // of the last step, where the host can read it in place
  std::vector<float> copied_;  // or a copy of it
  std::vector<int32_t> best_ids_;
};

}  // namespace limpid
