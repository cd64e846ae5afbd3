#pragma once

namespace limpid::microgpt {

// The numbers of one step of Adam (Kingma & Ba 2015, arXiv:1412.6980, algorithm 1), for a weight w
// with gradient g:
//   m = beta1 m + (1 - beta1) g
//   v = beta2 v + (1 - beta2) g^2
//   w = w - step_size m / (sqrt(v second_unbiasing) + epsilon)
struct AdamStep {
  double beta1;
  double beta2;
  double step_size;         // learning rate / (1 - beta1^t)
  double second_unbiasing;  // 1 / (1 - beta2^t)
  double epsilon;
};

}  // namespace limpid::microgpt
