#include "train/optimizer.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/divide_up.h"
#include "executor/cpu/isa.h"
#include "executor/cpu/isa_list.h"

namespace limpid {

LIMPID_FOR_EACH_ISA(LIMPID_DECLARE_KERNELS, OptimizerKernels kOptimizerKernels)

const OptimizerKernels& optimizer_kernels(const char* isa) {
  static constexpr const OptimizerKernels* kEntries[] = {
      LIMPID_FOR_EACH_ISA(LIMPID_KERNELS_ENTRY, kOptimizerKernels)};
  return *kEntries[choose_isa(isa).number];
}

double sum_of_squares(std::span<const float> x, const OptimizerKernels& kernels, ThreadPool& pool) {
  std::vector<float> blocks(divide_up(x.size(), kSquaresAtOnce));
  pool.for_each(std::ssize(blocks), 8, [&](int64_t b) {
    const int64_t at = b * kSquaresAtOnce;
    const int64_t n = std::min(kSquaresAtOnce, std::ssize(x) - at);
    blocks[static_cast<size_t>(b)] = kernels.sum_of_squares(x.data() + at, n);
  });
  return std::accumulate(blocks.begin(), blocks.end(), 0.0);
}

Optimizer::Optimizer(const OptimizerOptions& options, std::span<Parameter> parameters)
    : options_(options), kernels_(optimizer_kernels()) {
  for (Parameter& parameter : parameters) {
    if (!parameter.learns) continue;
    const Shape& shape = parameter.value->shape();
    const bool is_muon = options.kind == OptimizerKind::kMuon;
    const OptimizerKind kind =
        is_muon && parameter.projections.empty() ? OptimizerKind::kAdamw : options.kind;
    slots_.push_back({&parameter, Tensor(DType::kF32, shape), {}, kind});
    if (kind == OptimizerKind::kAdamw) slots_.back().second = Tensor(DType::kF32, shape);
  }
}

double Optimizer::gradient_norm(ThreadPool& pool) const {
  double total = 0;
  for (const Slot& slot : slots_)
    total += sum_of_squares(slot.parameter->gradient.f32(), kernels_, pool);
  return std::sqrt(total);
}

void Optimizer::skip_step() {
  ++n_steps_;
  ++n_skipped_;
}

// Clipping shortens the gradient and keeps its direction (Pascanu et al. 2013, arXiv:1211.5063):
// with a norm of 4 and a limit of 1, every element counts a quarter. So one unusual batch cannot
// move the weights far.
void Optimizer::step(double learning_rate, double norm, ThreadPool& pool, double gradient_factor) {
  constexpr int64_t kElementsPerRange = 1 << 15;
  ++n_steps_;
  const bool clipped = options_.clip > 0 && norm > options_.clip;
  const auto gradient_scale =
      static_cast<float>((clipped ? options_.clip / norm : 1.0) * gradient_factor);
  for (Slot& slot : slots_) {
    if (slot.kind == OptimizerKind::kMuon) {
      update_matrices(slot, learning_rate, gradient_scale, pool);
      continue;
    }
    pool.for_ranges(slot.parameter->value->shape().n_elements(), kElementsPerRange,
                    [&](int64_t begin, int64_t end, int /*thread*/) {
                      update(slot, learning_rate, gradient_scale, begin, end);
                    });
  }
}

float Optimizer::decay_of(const Slot& slot, double learning_rate) const {
  const double weight_decay = slot.parameter->decays() ? options_.weight_decay : 0.0;
  return static_cast<float>(1.0 - learning_rate * weight_decay);
}

void Optimizer::update_matrices(Slot& slot, double learning_rate, float gradient_scale,
                                ThreadPool& pool) {
  const int64_t cols = slot.parameter->value->shape().cols();
  for (const Parameter::Rows& rows : slot.parameter->projections) {
    const int64_t at = rows.begin * cols;
    muon_.step(
        {slot.parameter->value->f32().data() + at, slot.parameter->gradient.f32().data() + at,
         slot.first.f32().data() + at, rows.n, cols},
        {gradient_scale, static_cast<float>(learning_rate), decay_of(slot, learning_rate)}, pool);
  }
}

void Optimizer::update(Slot& slot, double learning_rate, float gradient_scale, int64_t begin,
                       int64_t end) {
  float* w = slot.parameter->value->f32().data() + begin;
  const float* g = slot.parameter->gradient.f32().data() + begin;
  float* m = slot.first.f32().data() + begin;
  const float decay = decay_of(slot, learning_rate);
  if (slot.kind == OptimizerKind::kSgd) {
    kernels_.sgd(w, g, m, end - begin,
                 {gradient_scale, static_cast<float>(options_.beta1),
                  static_cast<float>(learning_rate), decay});
    return;
  }
  // The running means know nothing of skipped steps, so these do not count for their bias either.
  const auto t = static_cast<double>(n_steps_ - n_skipped_);
  AdamwStep step;
  step.gradient_scale = gradient_scale;
  step.beta1 = static_cast<float>(options_.beta1);
  step.beta2 = static_cast<float>(options_.beta2);
  step.step_size = static_cast<float>(learning_rate / (1.0 - std::pow(options_.beta1, t)));
  step.second_unbiasing = static_cast<float>(1.0 / (1.0 - std::pow(options_.beta2, t)));
  step.epsilon = static_cast<float>(options_.epsilon);
  step.decay = decay;
  kernels_.adamw(w, g, m, slot.second.f32().data() + begin, end - begin, step);
}

std::vector<StateTensor> Optimizer::state() {
  std::vector<StateTensor> state;
  for (Slot& slot : slots_) {
    state.push_back({"first." + slot.parameter->name, &slot.first});
    if (slot.kind == OptimizerKind::kAdamw)
      state.push_back({"second." + slot.parameter->name, &slot.second});
  }
  return state;
}

}  // namespace limpid
