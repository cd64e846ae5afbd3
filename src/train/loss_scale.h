// Dynamic loss scaling (Micikevicius et al. 2018, arXiv:1710.03740, section 3.2).
//
// An f16 below 6e-8 is 0, and many gradients of activations are smaller. So the loss, and with it
// every gradient, is multiplied by a scale, and the gradients of the weights are divided by it in
// f32. When a gradient is beyond the largest f16, 65,504, the step is skipped and the scale is
// halved. After 2,000 steps in a row that were not skipped, the scale is doubled.
#pragma once

#include <algorithm>
#include <cstdint>

#include "tensor/dtype.h"

namespace limpid {

class LossScale {
 public:
  // The scale is always 1, except for f16.
  explicit LossScale(DType dtype) : is_dynamic_(dtype == DType::kF16) {
    if (is_dynamic_) scale_ = 65536;
  }

  bool is_dynamic() const { return is_dynamic_; }
  double value() const { return scale_; }
  // Whether a smaller scale could make gradients finite.
  bool can_fall() const { return is_dynamic_ && scale_ > 1.0 / 65536; }
  int64_t n_good_steps() const { return n_good_steps_; }
  void set(double scale, int64_t n_good_steps) {  // of a run that goes on
    scale_ = scale;
    n_good_steps_ = n_good_steps;
  }

  void skipped() {
    scale_ /= 2;
    n_good_steps_ = 0;
  }
  void updated() {
    if (!is_dynamic_ || ++n_good_steps_ < kStepsToRise) return;
    scale_ = std::min(scale_ * 2, 0x1p40);
    n_good_steps_ = 0;
  }

 private:
  static constexpr int64_t kStepsToRise = 2000;

  bool is_dynamic_;
  double scale_ = 1;
  int64_t n_good_steps_ = 0;  // since the scale changed
};

}  // namespace limpid
