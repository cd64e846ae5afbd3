#include "insight/step_tracer.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "base/check.h"
#include "base/stopwatch.h"
#include "insight/timing_executor.h"

namespace limpid {
namespace {

std::vector<std::string> place_names() {
  std::vector<std::string> names;
  names.reserve(kNumPlaces);
  for (int i = 0; i < kNumPlaces; ++i) names.emplace_back(place_name(static_cast<Place>(i)));
  return names;
}

}  // namespace

void StepTracer::set_show(Show show) {
  show_ = std::move(show);
  pending_.clear();
  layer_ = -1;
}

std::vector<std::string> StepTracer::op_names() const {
  std::vector<std::string> names = {
#define LIMPID_OP(result, name, parameters, arguments) #name,
#include "executor/op_list.h"
  };
  const std::vector<std::string> places = place_names();
  std::set<std::string> others(places.begin(), places.end());  // attn_output is a matrix too
  for (const auto& [id, source] : sources()) {
    if (source.use != WeightUse::kVector) others.insert(matrix_kind(source.name));
  }
  names.insert(names.end(), others.begin(), others.end());
  return names;
}

void StepTracer::end_step() {
  show_pending();
  layer_ = -1;
  inner().end_step();
}

#define LIMPID_OP(result, name, parameters, arguments)            \
  result StepTracer::name parameters {                            \
    return traced(#name, [&] { return inner().name arguments; }); \
  }
#define LIMPID_SPECIAL_OP(result, name, parameters, arguments)  // the two that follow
#define LIMPID_TABLE_OP LIMPID_OP
#include "executor/op_list.h"

Activation StepTracer::attention(const Activation& q, const Activation& k, const Activation& v,
                                 KvStorage& kv, int64_t layer, const AttentionShape& shape) {
  return traced("attention",
                [&] { return DelegatingExecutor::attention(q, k, v, kv, layer, shape); });
}

void StepTracer::linear(const Activation& x, std::span<Projection> projections) {
  const Stopwatch watch;
  inner().linear(x, projections);
  std::optional<double> taken = watch.seconds();
  for (const Projection& each : projections) {
    add(fmt::format("linear {}", matrix_kind(source(each.weight).name)), each.y,
        std::exchange(taken, std::nullopt));
  }
}

Activation StepTracer::traced(std::string op, const std::function<Activation()>& run) {
  const Stopwatch watch;
  Activation y = run();
  const double taken = watch.seconds();
  add(std::move(op), y, taken);
  return y;
}

void StepTracer::add(std::string op, const Activation& y, std::optional<double> seconds) {
  if (!show_) return;
  TracedOp traced{std::move(op), std::nullopt, layer_, y.rows(), y.cols(), {}, seconds};
  traced.values.resize(static_cast<size_t>(y.rows() * y.cols()));
  inner().read(y, traced.values);
  pending_.push_back({y.id(), std::move(traced)});
}

// Ids are used again when an activation has died, so the last one is meant. After the residual
// stream of a block the next op belongs to the next block, which its own name tells, or to none.
void StepTracer::observe(Place place, int64_t layer, const Activation& x) {
  inner().observe(place, layer, x);
  const auto named = std::ranges::find(pending_.rbegin(), pending_.rend(), x.id(), &Pending::id);
  if (named != pending_.rend()) {
    named->op.place = place;
    named->op.layer = layer;
  }
  layer_ = place == Place::kFfnResidual ? -1 : layer;
  if (place != Place::kQuery && place != Place::kKey) show_pending();
}

void StepTracer::show_pending() {
  const std::vector<Pending> shown = std::move(pending_);
  pending_.clear();
  if (!show_) return;
  for (const Pending& each : shown) show_(each.op);
}

namespace {

// What `verify` calls an activation, with its layer in front: "L2.attn_heads", "blk.2.attn_heads".
std::optional<ModelPart> observed_tensor(std::string_view name, const DecoderSpec& spec) {
  const auto in_layer = name_in_layer(name);
  const std::string_view place = in_layer ? in_layer->rest : name;
  const auto found = place_from_name(place);
  if (!found) return std::nullopt;
  const ModelPart tensor{*found, in_layer ? in_layer->layer : -1};
  const bool in_block = *found >= Place::kAttnNorm && *found <= Place::kFfnResidual;
  LIMPID_CHECK(ArgumentError, in_block == (tensor.layer >= 0), "{}: {}", name,
               in_block ? "which layer? write L2." + std::string(place)
                        : std::string(place) + " belongs to no layer");
  LIMPID_CHECK(ArgumentError, tensor.layer < spec.n_layers, "{}: the model has layers 0 to {}",
               name, spec.n_layers - 1);
  return tensor;
}

}  // namespace

ModelPart named_tensor(std::string_view name, const DecoderSpec& spec) {
  if (const auto observed = observed_tensor(name, spec)) return *observed;
  const auto part = find_part(name, spec);
  LIMPID_CHECK(
      ArgumentError, part.has_value(),
      "'{}' is neither a part of the model (L3, L3.attn, L3.mlp, L3.H5) nor an activation: "
      "{}, with L2. before those of a layer",
      name, fmt::join(place_names(), ", "));
  return *part;
}

}  // namespace limpid
