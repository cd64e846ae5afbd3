#pragma once

namespace limpid::microgpt {

// The numbers of one step of Adam (Kingma & Ba 2015, arXiv:1412.6980, algorithm 1), for a weight w
// with gradient g:
//   m = beta1 m + (1 - beta1) g
//   v = beta2 v + (1 - beta2) g^2
//   w = w - step_size m / (sqrt(v second_unbiasing) + epsilon)
// m and v are running means of the gradient and of its square. Both start at 0 and are too small in
// the first steps, by the factors 1 - beta1^t and 1 - beta2^t; step_size and second_unbiasing
// correct this. Dividing by sqrt(v) gives every parameter steps of similar size, whatever the size
// of its gradients.
struct AdamStep {
  double beta1;
  double beta2;
  double step_size;         // learning rate / (1 - beta1^t)
  double second_unbiasing;  // 1 / (1 - beta2^t)
  double epsilon;
};

}  // namespace limpid::microgpt
