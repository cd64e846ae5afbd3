#include "generate/memory_plan.h"

#include <algorithm>
#include <span>

#include "base/check.h"
#include "executor/layered_executor.h"
#include "generate/engine.h"
#include "model/decoder_from_checkpoint.h"
#include "model/model.h"

namespace limpid {
namespace {

constexpr int64_t kContextStep = 256;
// Layers leave a device for the CPU, or memory for the file, when a context of this size does not
// fit beside them.
constexpr int64_t kLeastContext = 4096;

std::string mebibytes(uint64_t n_bytes) {
  return fmt::format("{:.1f} MiB", static_cast<double>(n_bytes) / (1U << 20U));
}

std::string part_text(const DevicePlan& part, int64_t n_ctx) {
  return fmt::format("weights {}, KV cache of {} tokens {}, activations {}",
                     mebibytes(part.weights), n_ctx, mebibytes(part.kv_cache),
                     mebibytes(part.activations));
}

constexpr const char* kAdvice =
    "a smaller context (OpenOptions::n_ctx), a smaller batch (OpenOptions::n_batch), or a model of "
    "fewer bits";

// What check_memory_plan says; "" for a plan that fits.
std::string problem_of(const MemoryPlan& plan) {
  for (const DevicePlan& part : plan.devices) {
    if (part.available == 0 || part.allocated() <= part.available) continue;
    // A GPU with all layers may have room for fewer.
    const bool has_layers =
        plan.devices.size() > 1 || (part.device != "cpu" && part.device != "reference");
    return fmt::format(
        "{} {} of memory ({}), but {} are available: use {}{}",
        has_layers ? fmt::format("layers {} to {} on {} need", part.first_layer, part.end_layer - 1,
                                 part.device)
                   : "the model needs",
        mebibytes(part.allocated()), part_text(part, plan.n_ctx), mebibytes(part.available),
        has_layers ? "another number of layers there (OpenOptions::gpu_layers), " : "", kAdvice);
  }
  if (!plan.shares_memory || plan.available == 0 || plan.allocated() <= plan.available) return "";
  return fmt::format(
      "the model needs {} of the memory that both devices have ({}), but {} are available: use {}",
      mebibytes(plan.allocated()), plan_text(plan), mebibytes(plan.available), kAdvice);
}

// The moments of a step at which most activations are alive, as numbers of columns (StepSize). They
// follow model/decoder.cpp. Attention holds x and n = norm(x) while it computes, 2 d together; the
// MLP holds x, the result of attention, h and m = norm(h), 4 d together. To these come the operands
// and the result of one op, which the comments name.
std::vector<StepSize::Moment> moments_of(const DecoderSpec& spec) {
  const int64_t d = spec.d_model;
  const int64_t q = spec.n_heads * spec.head_dim;
  const int64_t kv = spec.n_kv_heads * spec.head_dim;
  const int64_t f = spec.d_ff;
  const bool is_gated = spec.mlp == MlpKind::kSwiGlu;
  return {{.of_tokens = 2 * d + q + 2 * kv, .input = d},      // Q, K and V, of n
          {.of_tokens = 2 * d + 2 * q + 2 * kv},              // what the heads read, of Q, K and V
          {.of_tokens = 3 * d + 2 * q + 2 * kv, .input = q},  // the output projection
          {.of_tokens = 4 * d + (is_gated ? 2 : 1) * f, .input = d},  // gate and up, or up, of m
          {.of_tokens = 4 * d + (is_gated ? 3 : 2) * f},              // the neurons, of these
          {.of_tokens = 5 * d + f, .input = f}};                      // the down projection
}

// Makes the plan of one model.
class Planner {
 public:
  Planner(const Checkpoint& checkpoint, const DecoderSpec& spec, const OpenOptions& options,
          const Devices& devices)
      : checkpoint_(checkpoint),
        spec_(spec),
        options_(options),
        devices_(devices),
        sources_(weight_sources(checkpoint, spec)) {}

  MemoryPlan plan() {
    const int64_t n_first = n_first_layers();
    MemoryPlan whole = plan_of(n_first);
    if (!options_.check_memory || problem_of(whole).empty()) return whole;
    for (const int64_t n_ctx : {context_or(kLeastContext), context_or(kContextStep)}) {
      for (int64_t layer = spec_.n_layers; layer >= 0; --layer) {
        for (WeightSource& source : sources_) source.stays_in_file = source.layer >= layer;
        if (!all_fit(parts_of(n_first), n_ctx)) continue;
        MemoryPlan plan = plan_of(n_first);
        plan.first_layer_in_file = layer;
        return plan;
      }
    }
    return whole;
  }

 private:
  struct Part {
    const Executor* executor;
    DevicePlan plan;  // without kv_cache, which depends on the context
  };

  MemoryPlan plan_of(int64_t n_first) const {
    MemoryPlan plan;
    plan.n_ctx_train = spec_.n_ctx_train;
    const std::vector<Part> parts = parts_of(n_first);
    plan.shares_memory = share_memory(parts);
    plan.n_ctx = options_.n_ctx;
    if (plan.n_ctx == 0) {
      plan.n_ctx = spec_.n_ctx_train;
      for (const Part& part : parts) plan.n_ctx = std::min(plan.n_ctx, n_ctx_that_fits({&part, 1}));
      if (plan.shares_memory) plan.n_ctx = std::min(plan.n_ctx, n_ctx_that_fits(parts));
      plan.n_ctx_reduced = plan.n_ctx < spec_.n_ctx_train;
    }
    plan.available = plan.shares_memory ? available_to(parts) : 0;
    for (Part part : parts) {
      part.plan.kv_cache = cache_bytes(part, plan.n_ctx);
      const bool has_head = part.plan.end_layer == spec_.n_layers;
      part.plan.activations = part.executor->step_bytes(step_size(has_head, plan.n_ctx));
      plan.weights_packed += part.plan.weights;
      plan.kv_cache += part.plan.kv_cache;
      plan.activations += part.plan.activations;
      plan.available += plan.shares_memory ? 0 : part.plan.available;
      plan.devices.push_back(std::move(part.plan));
    }
    for (const auto& [name, tensor] : checkpoint_.tensors)
      plan.weights_in_file += is_copied(name) ? 0 : tensor.n_bytes();
    return plan;
  }

  // A derived tensor is a copy that stays in memory, unless its parts are used in the file.
  bool is_copied(const std::string& name) const {
    const auto made = checkpoint_.derived.find(name);
    return made != checkpoint_.derived.end() && made->second.row_parts.empty();
  }

  int64_t n_first_layers() const {
    if (!devices_.second) return spec_.n_layers;
    if (options_.gpu_layers != OpenOptions::kLayersThatFit)
      return std::min(options_.gpu_layers, spec_.n_layers);
    const int64_t n_ctx = context_or(kLeastContext);
    for (int64_t n = spec_.n_layers; n > 0; --n) {
      const std::vector<Part> parts = parts_of(n);
      const bool both_fit = !share_memory(parts) || fit(parts, n_ctx);
      if (both_fit && fit({&parts.front(), 1}, n_ctx)) return n;
    }
    return 0;
  }
  // The context of the options, or else one of `n`, or the model's own if that is smaller.
  int64_t context_or(int64_t n) const {
    return options_.n_ctx > 0 ? options_.n_ctx : std::min(n, spec_.n_ctx_train);
  }

  // ---- the parts that lie in one memory: one, or both where they share it ----

  bool share_memory(std::span<const Part> parts) const {
    return parts.size() > 1 && devices_.first->memory_name() == devices_.second->memory_name();
  }
  // OpenCL on the CPU may have a limit of its own.
  static uint64_t available_to(std::span<const Part> parts) {
    uint64_t available = 0;
    for (const Part& part : parts) available = std::max(available, part.plan.available);
    return available;
  }
  // With a tenth left free.
  bool fit(std::span<const Part> parts, int64_t n_ctx) const {
    const uint64_t available = available_to(parts);
    uint64_t wanted = 0;
    for (const Part& part : parts) wanted += part.plan.allocated() + cache_bytes(part, n_ctx);
    return available == 0 || wanted <= available - available / 10;
  }
  bool all_fit(std::span<const Part> parts, int64_t n_ctx) const {
    return (!share_memory(parts) || fit(parts, n_ctx)) &&
           std::ranges::all_of(parts, [&](const Part& part) {
             return fit({&part, 1}, n_ctx);
           });
  }
  int64_t n_ctx_that_fits(std::span<const Part> parts) const {
    const uint64_t available = available_to(parts);
    if (available == 0) return INT64_MAX;
    uint64_t taken = available / 10;
    uint64_t per_step = 0;
    for (const Part& part : parts) {
      taken += part.plan.allocated();
      per_step += cache_bytes(part, kContextStep);
    }
    const uint64_t budget = available - std::min(available, taken);
    const uint64_t n_steps = budget / std::max<uint64_t>(1, per_step);
    const auto n = static_cast<int64_t>(std::min<uint64_t>(n_steps, INT64_MAX / kContextStep));
    return std::max<int64_t>(1, n) * kContextStep;
  }

  // ---- the sizes of one part ----

  // Layers [0, n_first) on the first device, the others on the second.
  std::vector<Part> parts_of(int64_t n_first) const {
    std::vector<Part> parts;
    if (n_first > 0) parts.push_back(part_of(*devices_.first, 0, n_first));
    if (n_first < spec_.n_layers)
      parts.push_back(part_of(*devices_.second, n_first, spec_.n_layers));
    return parts;
  }

  Part part_of(const Executor& executor, int64_t first_layer, int64_t end_layer) const {
    DevicePlan plan;
    plan.device = &executor == devices_.first.get() ? devices_.first_name : devices_.second_name;
    plan.first_layer = first_layer;
    plan.end_layer = end_layer;
    plan.available = executor.available_memory();
    const bool is_whole = end_layer - first_layer == spec_.n_layers;
    // The n_first of parts_of: the first part ends there, and the second one begins there.
    const int64_t n_first = first_layer == 0 ? end_layer : first_layer;
    for (const WeightSource& source : sources_) {
      const auto part = is_whole ? source : part_of_weight(source, n_first, first_layer == 0);
      if (part) count_weight(executor, *part, plan);
    }
    // For the largest possible context; `plan` counts again when the context is known.
    const bool has_head = end_layer == spec_.n_layers;
    plan.activations = executor.step_bytes(step_size(has_head, context_or(spec_.n_ctx_train)));
    return {&executor, std::move(plan)};
  }

  // The executor reads in place what it does not copy: in the mapped file, or in the memory of a
  // derived tensor.
  void count_weight(const Executor& executor, const WeightSource& weight, DevicePlan& plan) const {
    const uint64_t copied = executor.weight_bytes(weight);
    const uint64_t in_place = copied == 0 ? weight.tensor.n_bytes() : 0;
    const bool is_in_file = !is_copied(weight.name);
    plan.weights += copied + (is_in_file ? 0 : in_place);
    if (!is_matrix(weight.use)) return;
    plan.weights_in_file += is_in_file ? in_place : 0;
    plan.bytes_per_token += copied + in_place;
  }

  // One step of a prompt, whose last token's logits are wanted.
  StepSize step_size(bool has_head, int64_t n_ctx) const {
    const int64_t d_attention = spec_.n_heads * spec_.head_dim;
    StepSize size{.n_tokens = std::min(options_.n_batch, n_ctx),
                  .n_positions = n_ctx,
                  .head_dim = spec_.head_dim,
                  .widest = std::max({spec_.d_model, d_attention, spec_.d_ff}),
                  .moments = moments_of(spec_)};
    size.is_quantized = std::ranges::any_of(sources_, [](const WeightSource& source) {
      return source.use == WeightUse::kProjection && is_quantized(source.tensor.dtype);
    });
    if (!has_head) return size;
    size.n_outputs = 1;
    size.widest_head = spec_.vocab_size;
    size.moments.push_back(
        {.of_tokens = spec_.d_model, .of_outputs = 2 * spec_.d_model + spec_.vocab_size});
    return size;
  }

  // Keys and values in whole blocks, and the angles, which each device has for itself.
  uint64_t cache_bytes(const Part& part, int64_t n_ctx) const {
    const KvLayout layout{part.plan.end_layer - part.plan.first_layer,
                          spec_.n_kv_heads,
                          spec_.head_dim,
                          blocks_for(n_ctx),
                          cache_dtype(options_.cache_type_k),
                          cache_dtype(options_.cache_type_v)};
    const uint64_t kv = part.executor->kv_bytes(layout);
    if (spec_.position != PositionKind::kRope) return kv;
    return kv + part.executor->rope_bytes(n_loaded_angles(spec_), n_ctx);
  }

  const Checkpoint& checkpoint_;
  const DecoderSpec& spec_;
  const OpenOptions& options_;
  const Devices& devices_;
  std::vector<WeightSource> sources_;
};

}  // namespace

MemoryPlan make_memory_plan(const Checkpoint& checkpoint, const DecoderSpec& spec,
                            const OpenOptions& options) {
  return make_memory_plan(checkpoint, spec, options, open_devices(options));
}

MemoryPlan make_memory_plan(const Checkpoint& checkpoint, const DecoderSpec& spec,
                            const OpenOptions& options, const Devices& devices) {
  constexpr int64_t kMostContext = int64_t{1} << 40;  // whose bytes can be computed
  LIMPID_CHECK(ArgumentError, options.n_ctx >= 0 && options.n_ctx <= kMostContext,
               "[engine] n_ctx is {}, must be 1 to {}, or 0 (the model's own)", options.n_ctx,
               kMostContext);
  LIMPID_CHECK(ArgumentError, options.n_batch >= 1, "[engine] n_batch is {}, must be 1 or more",
               options.n_batch);
  check_context(spec, options.n_ctx);
  return Planner(checkpoint, spec, options, devices).plan();
}

void check_memory_plan(const MemoryPlan& plan) {
  if (const std::string problem = problem_of(plan); !problem.empty()) throw ResourceError(problem);
}

std::string plan_text(const MemoryPlan& plan) {
  std::string text;
  for (const DevicePlan& part : plan.devices) {
    text += fmt::format("{}layers {} to {} on {}: {}", text.empty() ? "" : "; ", part.first_layer,
                        part.end_layer - 1, part.device, part_text(part, plan.n_ctx));
  }
  return text;
}

}  // namespace limpid
