#include "generate/memory_plan.h"

#include <algorithm>

#include "base/check.h"
#include "base/checked.h"
#include "generate/engine.h"
#include "model/model.h"

namespace limpid {
namespace {

constexpr int64_t kContextStep = 256;

// The product of sizes, which come from a file and might overflow.
uint64_t product(std::initializer_list<int64_t> factors) {
  uint64_t result = 1;
  for (const int64_t factor : factors) {
    const auto next = checked_mul(result, static_cast<uint64_t>(factor));
    LIMPID_CHECK(ResourceError, next.has_value(),
                 "[memory] the model's sizes need more than 2^64 bytes");
    result = *next;
  }
  return result;
}

std::string mebibytes(uint64_t n_bytes) {
  return fmt::format("{:.1f} MiB", static_cast<double>(n_bytes) / (1U << 20U));
}

// Bytes for one more position of context: keys and values [n_layers, n_kv_heads, head_dim] each,
// and the cosines and sines of the rotary angles. Llama 3.2 1B (16 layers, 8 heads of 64) in f16
// needs 16 * 8 * 64 * (2 + 2) = 32 KiB, and 32 frequencies * 8 bytes.
uint64_t bytes_per_position(const DecoderSpec& spec, const OpenOptions& options) {
  const int64_t element_bytes = dtype_info(cache_dtype(options.cache_type_k)).block_bytes +
                                dtype_info(cache_dtype(options.cache_type_v)).block_bytes;
  constexpr int64_t kAngleBytes = 2 * sizeof(float);
  return product({spec.n_layers, spec.n_kv_heads, spec.head_dim, element_bytes}) +
         product({static_cast<int64_t>(spec.rope.inverse_frequencies.size()), kAngleBytes});
}

// The largest set of buffers that is alive at one time in a layer: the residual and its norm, and
// either Q, K, V and the mixed heads, or gate, up and their product. Two rows of logits are added.
uint64_t activation_bytes(const DecoderSpec& spec, int64_t n_tokens) {
  const int64_t d_attention = (2 * spec.n_heads + 2 * spec.n_kv_heads) * spec.head_dim;
  const int64_t width = 4 * spec.d_model + std::max(d_attention, 3 * spec.d_ff);
  constexpr int64_t kFloat = sizeof(float);
  return product({n_tokens, width, kFloat}) + product({2, spec.vocab_size, kFloat});
}

// How the model will use a tensor: as model/tensor_table.cpp loads it.
WeightUse use_of(const std::string& name, const TensorView& tensor, const DecoderSpec& spec) {
  if (tensor.shape.rank() < 2) return WeightUse::kVector;
  if (name == "position_embd.weight") return WeightUse::kLookup;
  if (name == "token_embd.weight")
    return spec.tied_embeddings ? WeightUse::kLookupAndHead : WeightUse::kLookup;
  return name == "output.weight" ? WeightUse::kHead : WeightUse::kProjection;
}

}  // namespace

MemoryPlan make_memory_plan(const Checkpoint& checkpoint, const DecoderSpec& spec,
                            const OpenOptions& options) {
  return make_memory_plan(checkpoint, spec, options, *make_executor(options));
}

MemoryPlan make_memory_plan(const Checkpoint& checkpoint, const DecoderSpec& spec,
                            const OpenOptions& options, const Executor& executor) {
  LIMPID_CHECK(ArgumentError, options.n_ctx >= 0,
               "[engine] n_ctx is {}, must be 0 (the model's own) or more", options.n_ctx);
  LIMPID_CHECK(ArgumentError, options.n_batch >= 1, "[engine] n_batch is {}, must be 1 or more",
               options.n_batch);
  check_context(spec, options.n_ctx);
  MemoryPlan plan;
  plan.n_ctx_train = spec.n_ctx_train;
  plan.available = executor.available_memory();
  for (const auto& [name, tensor] : checkpoint.tensors) {
    // A derived tensor is a copy that stays in memory, unless its parts are used in the file.
    const auto made = checkpoint.derived.find(name);
    const bool copied = made != checkpoint.derived.end() && made->second.row_parts.empty();
    (copied ? plan.weights_packed : plan.weights_in_file) += tensor.n_bytes();
    const WeightSource source{name, tensor, use_of(name, tensor, spec)};
    plan.weights_packed += executor.weight_bytes(source);
  }
  const uint64_t per_position = bytes_per_position(spec, options);
  plan.n_ctx = options.n_ctx > 0 ? options.n_ctx : spec.n_ctx_train;
  plan.activations = activation_bytes(spec, std::min(options.n_batch, plan.n_ctx));
  if (options.n_ctx == 0 && plan.available > 0) {
    const uint64_t taken = plan.weights_packed + plan.activations;
    // A tenth stays free for other programs.
    const uint64_t budget = plan.available - std::min(plan.available, taken + plan.available / 10);
    const auto n_fit =
        static_cast<int64_t>(std::min<uint64_t>(budget / per_position, INT64_MAX / 2));
    if (n_fit < plan.n_ctx) {
      plan.n_ctx =
          std::min(plan.n_ctx, std::max(kContextStep, n_fit / kContextStep * kContextStep));
      plan.n_ctx_reduced = plan.n_ctx < spec.n_ctx_train;
    }
  }
  plan.kv_cache = product({plan.n_ctx, static_cast<int64_t>(per_position)});
  return plan;
}

void check_memory_plan(const MemoryPlan& plan) {
  if (plan.available == 0 || plan.allocated() <= plan.available) return;
  throw ResourceError(fmt::format(
      "the model needs {} of memory (weights {}, KV cache of {} tokens {}, activations {}), but {} "
      "are available: use a smaller context (OpenOptions::n_ctx), a smaller batch "
      "(OpenOptions::n_batch), or a "
      "model of fewer bits",
      mebibytes(plan.allocated()), mebibytes(plan.weights_packed), plan.n_ctx,
      mebibytes(plan.kv_cache), mebibytes(plan.activations), mebibytes(plan.available)));
}

}  // namespace limpid
