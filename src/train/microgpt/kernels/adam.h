// Adam in vectors, for both engines.
#pragma once

#include "train/microgpt/adam_step.h"
#include "train/microgpt/kernels/vectors.h"

namespace limpid::LIMPID_ISA {

template <typename T>
struct AdamState {
  T* weights;
  const T* gradients;
  T* first_moment;
  T* second_moment;
};

// On n numbers, whole vectors; they need not be aligned.
template <typename T>
inline void adam(const AdamState<T>& state, size_t n, const microgpt::AdamStep& step) {
  const T beta1 = static_cast<T>(step.beta1);
  const T beta2 = static_cast<T>(step.beta2);
  const T rest1 = static_cast<T>(1.0 - step.beta1);
  const T rest2 = static_cast<T>(1.0 - step.beta2);
  const T step_size = static_cast<T>(step.step_size);
  const T unbiasing = static_cast<T>(step.second_unbiasing);
  const T epsilon = static_cast<T>(step.epsilon);
  for (size_t i = 0; i < n; i += kLanes<T>) {
    const Vector<T> g = load(state.gradients + i);
    const Vector<T> m = load(state.first_moment + i) * beta1 + g * rest1;
    const Vector<T> v = load(state.second_moment + i) * beta2 + g * g * rest2;
    store(state.first_moment + i, m);
    store(state.second_moment + i, v);
    const Vector<T> change = m * step_size / (root_of<T>(v * unbiasing) + epsilon);
    store(state.weights + i, load(state.weights + i) - change);
  }
}

}  // namespace limpid::LIMPID_ISA
