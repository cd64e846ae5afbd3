// Adam with vectors, for the scalar engine and the fast engine.
#pragma once

#include "train/microgpt/adam_step.h"
#include "train/microgpt/kernels/vectors.h"

namespace limpid::LIMPID_ISA {

// An AdamStep with constant factors moved out of the loop. The moments are stored as m / (1 -
// beta1) and v / (1 - beta2), which saves two multiplications. With u = (1 - beta2)
// second_unbiasing, the change of a weight is
//   step_size (1 - beta1) m / (sqrt(u v) + epsilon)
//     = (step_size (1 - beta1) / sqrt(u)) m / (sqrt(v) + epsilon / sqrt(u)).
template <typename T>
struct AdamFactors {
  explicit AdamFactors(const microgpt::AdamStep& step)
      : beta1(static_cast<T>(step.beta1)), beta2(static_cast<T>(step.beta2)) {
    const double factor = root((1.0 - step.beta2) * step.second_unbiasing);
    step_size = static_cast<T>(step.step_size * (1.0 - step.beta1) / factor);
    epsilon = static_cast<T>(step.epsilon / factor);
  }
  T beta1, beta2, step_size, epsilon;
};

// Pointers to weights and moments, which need not be aligned.
template <typename T>
struct AdamState {
  T* weights;
  T* first_moment;
  T* second_moment;

  AdamState from(int64_t i) const { return {weights + i, first_moment + i, second_moment + i}; }
};

// Updates the vector at index i, whose gradient is g. Returns the new weights.
template <typename T>
inline Vector<T> adam(const AdamState<T>& state, int64_t i, Vector<T> g,
                      const AdamFactors<T>& step) {
  const Vector<T> m = load(state.first_moment + i) * step.beta1 + g;
  const Vector<T> v = load(state.second_moment + i) * step.beta2 + g * g;
  store(state.first_moment + i, m);
  store(state.second_moment + i, v);
  const Vector<T> change = m * step.step_size / (root_of<T>(v) + step.epsilon);
  const Vector<T> weights = load(state.weights + i) - change;
  store(state.weights + i, weights);
  return weights;
}

}  // namespace limpid::LIMPID_ISA
