// Schedules of the learning rate.
#pragma once

#include <cstdint>

namespace limpid {

enum class ScheduleKind : uint8_t {
  kConstant,
  kLinear,
  kCosine,  // Loshchilov & Hutter 2017, without restarts
  kWsd,     // warm-up, stable, decay (Hu et al. 2024, arXiv:2404.06395): constant, then down
            // linearly in the last fifth of the run
};

struct Schedule {
  ScheduleKind kind = ScheduleKind::kCosine;
  double largest = 3e-4;
  double smallest = 0;   // at the last step
  int64_t n_warmup = 0;  // steps from 0 to `largest`, linearly
  int64_t n_steps = 0;   // of the whole run

  // The rate of the update that follows step `step`, which counts from 0.
  double at(int64_t step) const;
};

}  // namespace limpid
