#include "train/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace limpid {
namespace {

constexpr double kDecayShare = 0.2;  // of the steps of kWsd

}  // namespace

// Warm-up avoids long steps while the optimizer's means rest on few gradients. With n_warmup = 4
// the first rates are 1/5, 2/5, 3/5 and 4/5 of `largest`: never 0, which would waste a step.
double Schedule::at(int64_t step) const {
  if (step < n_warmup)
    return largest * static_cast<double>(step + 1) / (static_cast<double>(n_warmup) + 1);
  const auto decay_begin =
      kind == ScheduleKind::kWsd
          ? std::max(n_warmup, n_steps - static_cast<int64_t>(std::llround(
                                             kDecayShare * static_cast<double>(n_steps))))
          : n_warmup;
  const auto length = static_cast<double>(std::max<int64_t>(1, n_steps - decay_begin));
  const double done = std::clamp(static_cast<double>(step - decay_begin) / length, 0.0, 1.0);
  switch (kind) {
    case ScheduleKind::kConstant:
      return largest;
    case ScheduleKind::kCosine:
      return smallest + 0.5 * (1.0 + std::cos(std::numbers::pi * done)) * (largest - smallest);
    case ScheduleKind::kLinear:
    case ScheduleKind::kWsd:
      return largest + done * (smallest - largest);
  }
  return largest;
}

}  // namespace limpid
