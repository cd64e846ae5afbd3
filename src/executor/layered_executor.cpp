#include "executor/layered_executor.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace limpid {
namespace {

// The layers of `layout` that an executor has.
KvLayout part_of(KvLayout layout, int64_t n_layers) {
  layout.n_layers = n_layers;
  return layout;
}

// The storages of both executors, each with the layers that it has.
class LayeredKvStorage final : public KvStorage {
 public:
  LayeredKvStorage(const KvLayout& layout, std::unique_ptr<KvStorage> first,
                   std::unique_ptr<KvStorage> second)
      : KvStorage(layout), parts_{std::move(first), std::move(second)} {}

  KvStorage& part(size_t executor) { return *parts_[executor]; }

  // If the second part finds no memory, the first one has blocks that wait for the next call.
  void grow(int64_t n_blocks) override {
    for (const auto& part : parts_) {
      if (part->layout().n_blocks < n_blocks) part->grow(n_blocks);
    }
    KvStorage::grow(n_blocks);
  }
  uint64_t bytes_to_grow(int64_t n_blocks) const override {
    return parts_[0]->bytes_to_grow(n_blocks) + parts_[1]->bytes_to_grow(n_blocks);
  }
  uint64_t block_bytes() const override {
    return parts_[0]->block_bytes() + parts_[1]->block_bytes();
  }
  void read_block(int64_t block, std::span<std::byte> out) const override {
    const uint64_t n_first = parts_[0]->block_bytes();
    parts_[0]->read_block(block, out.first(n_first));
    parts_[1]->read_block(block, out.subspan(n_first));
  }
  void write_block(int64_t block, std::span<const std::byte> content) override {
    const uint64_t n_first = parts_[0]->block_bytes();
    parts_[0]->write_block(block, content.first(n_first));
    parts_[1]->write_block(block, content.subspan(n_first));
  }

 private:
  std::unique_ptr<KvStorage> parts_[2];
};

}  // namespace

std::optional<WeightSource> part_of_weight(const WeightSource& source, int64_t n_first,
                                           bool is_first) {
  if (source.use != WeightUse::kLookupAndHead)
    return (source.layer < n_first) == is_first ? std::optional(source) : std::nullopt;
  WeightSource part = source;
  part.use = is_first ? WeightUse::kLookup : WeightUse::kHead;
  return part;
}

LayeredExecutor::LayeredExecutor(std::unique_ptr<Executor> first, std::unique_ptr<Executor> second,
                                 int64_t n_first, int64_t n_layers)
    : executors_{std::move(first), std::move(second)},
      n_first_(n_first),
      n_layers_(n_layers),
      name_(fmt::format("{}:{}+{}", executors_[kFirst]->name(), n_first,
                        executors_[kSecond]->name())) {
  LIMPID_CHECK(ArgumentError, 0 < n_first && n_first < n_layers,
               "{} of {} layers leave nothing for two devices", n_first, n_layers);
  slots_.resize(kMostActivations);
}

// ---- memory -------------------------------------------------------------------------------------

uint64_t LayeredExecutor::weight_bytes(const WeightSource& source) const {
  uint64_t n_bytes = 0;
  for (const size_t executor : {kFirst, kSecond}) {
    if (const auto part = part_of_weight(source, n_first_, executor == kFirst))
      n_bytes += executors_[executor]->weight_bytes(*part);
  }
  return n_bytes;
}

uint64_t LayeredExecutor::kv_bytes(const KvLayout& layout) const {
  return first().kv_bytes(part_of(layout, n_first_)) +
         second().kv_bytes(part_of(layout, layout.n_layers - n_first_));
}

uint64_t LayeredExecutor::rope_bytes(int64_t n_rot, int64_t n_positions) const {
  return first().rope_bytes(n_rot, n_positions) + second().rope_bytes(n_rot, n_positions);
}

uint64_t LayeredExecutor::step_bytes(const StepSize& size) const {
  StepSize headless = size;
  headless.n_outputs = headless.widest_head = 0;
  return first().step_bytes(headless) + second().step_bytes(size);
}

uint64_t LayeredExecutor::available_memory() const {
  const auto of_all = [&](const Executor& executor, int64_t n) {
    return static_cast<uint64_t>(static_cast<double>(executor.available_memory()) *
                                 static_cast<double>(n_layers_) / static_cast<double>(n));
  };
  const uint64_t of_first = of_all(first(), n_first_);
  const uint64_t of_second = of_all(second(), n_layers_ - n_first_);
  // 0 is unknown.
  const uint64_t of_scarcer = of_first == 0 || of_second == 0 ? std::max(of_first, of_second)
                                                              : std::min(of_first, of_second);
  if (first().memory_name() != second().memory_name()) return of_scarcer;
  return std::min(of_scarcer, std::max(first().available_memory(), second().available_memory()));
}

// ---- loading ------------------------------------------------------------------------------------

Weight LayeredExecutor::load_weight(const WeightSource& source) {
  std::array<Weight, 2> loaded;
  if (source.use == WeightUse::kLookup || source.use == WeightUse::kLookupAndHead)
    stream_cols_ = std::max(stream_cols_, source.tensor.shape.cols());
  for (const size_t executor : {kFirst, kSecond}) {
    if (const auto part = part_of_weight(source, n_first_, executor == kFirst))
      loaded[executor] = executors_[executor]->load_weight(*part);
  }
  weights_.push_back(loaded);
  const Weight& shape = loaded[loaded[kFirst] ? kFirst : kSecond];
  return {static_cast<int32_t>(weights_.size() - 1), shape.rows, shape.cols};
}

RopeTable LayeredExecutor::load_rope(std::span<const double> inverse_frequencies,
                                     int64_t n_positions) {
  rope_tables_.push_back({first().load_rope(inverse_frequencies, n_positions),
                          second().load_rope(inverse_frequencies, n_positions)});
  return {static_cast<int32_t>(rope_tables_.size() - 1), rope_tables_.back()[kFirst].n_rot};
}

std::unique_ptr<KvStorage> LayeredExecutor::allocate_kv(const KvLayout& layout) {
  LIMPID_CHECK(ShapeError, layout.n_layers == n_layers_, "[kv] {} layers for a model of {}",
               layout.n_layers, n_layers_);
  auto first_part = first().allocate_kv(part_of(layout, n_first_));
  auto second_part = second().allocate_kv(part_of(layout, n_layers_ - n_first_));
  return std::make_unique<LayeredKvStorage>(layout, std::move(first_part), std::move(second_part));
}

void LayeredExecutor::reserve(int64_t max_tokens, int64_t max_outputs) {
  first().reserve(max_tokens, 0);
  second().reserve(max_tokens, max_outputs);
  moved_.reserve(static_cast<size_t>(Shape{max_tokens, stream_cols_}.n_elements()));
  projections_.reserve(kMostActivations);
}

// ---- a step -------------------------------------------------------------------------------------

void LayeredExecutor::begin_step() {
  second().inputs() = first().inputs();
  first().begin_step();
  try {
    second().begin_step();
  } catch (...) {
    first().end_step();
    throw;
  }
  at_ = kFirst;
}

void LayeredExecutor::end_step() {
  if (at_ == kFirst) first().end_step();
  second().end_step();
}

void LayeredExecutor::go_to(size_t executor) {
  if (executor == at_) return;
  LIMPID_CHECK(ShapeError, executor == kSecond, "[{}] a layer of {} comes after one of {}", name_,
               first().name(), second().name());
  first().end_step();
  at_ = kSecond;
}

Weight LayeredExecutor::reach(const Weight& weight) {
  if (weight && !local(weight)) go_to(1 - at_);
  return local(weight);
}

Weight LayeredExecutor::local(const Weight& weight) const {
  return weight ? weights_[static_cast<size_t>(weight.id)][at_] : Weight{};
}

RopeTable LayeredExecutor::local(const RopeTable& table) const {
  return rope_tables_[static_cast<size_t>(table.id)][at_];
}

const Activation& LayeredExecutor::local(const Activation& x) {
  Slot& slot = slots_[static_cast<size_t>(x.id())];
  if (!slot.on[at_]) {
    moved_.resize(static_cast<size_t>(x.rows() * x.cols()));
    executors_[1 - at_]->read(slot.on[1 - at_], moved_);
    slot.on[at_] = current().write(moved_, x.rows(), x.cols());
  }
  return slot.on[at_];
}

Activation LayeredExecutor::keep(Activation made) {
  auto slot = std::ranges::find(slots_, true, &Slot::is_free);
  if (slot == slots_.end()) slot = slots_.emplace(slots_.end());
  const int64_t rows = made.rows();
  const int64_t cols = made.cols();
  slot->is_free = false;
  slot->on[at_] = std::move(made);
  return {this, static_cast<int32_t>(slot - slots_.begin()), rows, cols};
}

void LayeredExecutor::release(int32_t id) noexcept {
  Slot& slot = slots_[static_cast<size_t>(id)];
  for (Activation& on : slot.on) const Activation given_back = std::move(on);
  slot.is_free = true;
}

Activation LayeredExecutor::write(std::span<const float> values, int64_t rows, int64_t cols) {
  return keep(current().write(values, rows, cols));
}

void LayeredExecutor::read(const Activation& x, std::span<float> out) {
  const auto [executor, there] = where(x);
  executor.read(there, out);
}

void LayeredExecutor::read_best(const Activation& x, int64_t k, std::span<int32_t> columns,
                                std::span<float> values) {
  const auto [executor, there] = where(x);
  executor.read_best(there, k, columns, values);
}

std::span<const float> LayeredExecutor::view(const Activation& x) const {
  const auto [executor, there] = where(x);
  return executor.view(there);
}

std::pair<Executor&, const Activation&> LayeredExecutor::where(const Activation& x) const {
  const auto& on = slots_[static_cast<size_t>(x.id())].on;
  const size_t executor = on[at_] ? at_ : 1 - at_;
  return {*executors_[executor], on[executor]};
}

// ---- ops ----------------------------------------------------------------------------------------

// Goes to where the weights of the op lie, and calls the op with the arguments there.
#define LIMPID_SPECIAL_OP(...)
#define LIMPID_TABLE_OP LIMPID_OP
#define LIMPID_OP(result, name, parameters, arguments) \
  result LayeredExecutor::name parameters {            \
    const auto op = [this](const auto&... each) {      \
      (reach(each), ...);                              \
      return keep(current().name(local(each)...));     \
    };                                                 \
    return op arguments;                               \
  }
#include "executor/op_list.h"

void LayeredExecutor::linear(const Activation& x, std::span<Projection> projections) {
  projections_.clear();
  for (const Projection& p : projections)
    projections_.push_back({reach(p.weight), local(p.bias), Activation{}});
  current().linear(local(x), projections_);
  for (size_t i = 0; i < projections.size(); ++i)
    projections[i].y = keep(std::move(projections_[i].y));
  projections_.clear();
}

void LayeredExecutor::linear_in_parts(const Activation& x, const Weight& weight,
                                      const SeePart& see) {
  const Weight there = reach(weight);
  current().linear_in_parts(local(x), there, see);
}

Activation LayeredExecutor::attention(const Activation& q, const Activation& k, const Activation& v,
                                      KvStorage& kv, int64_t layer, const AttentionShape& shape) {
  go_to(layer < n_first_ ? kFirst : kSecond);
  KvStorage& part = static_cast<LayeredKvStorage&>(kv).part(at_);
  const int64_t layer_of_part = at_ == kFirst ? layer : layer - n_first_;
  return keep(current().attention(local(q), local(k), local(v), part, layer_of_part, shape));
}

}  // namespace limpid
