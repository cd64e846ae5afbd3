// Weights and their gradients; the backward ops have files of their own.
#include "executor/cpu/cpu_gradients.h"

#include <algorithm>

#include "executor/check_shapes.h"

namespace limpid {

void CpuGradients::keep_gradient(const Weight& weight, std::span<float> gradient) {
  check_gradient(loaded(weight), gradient.size());
  gradients_[weight.id] = gradient;
}

std::span<float> CpuGradients::gradient(const Weight& weight) const {
  const auto found = gradients_.find(weight.id);
  return found == gradients_.end() ? std::span<float>{} : found->second;
}

// Tied weights have one gradient.
void CpuGradients::begin_gradients() {
  stale_.clear();
  for (const auto& [id, gradient] : gradients_) stale_.push_back(gradient.data());
}

bool CpuGradients::take_stale(const Weight& weight) {
  return std::erase(stale_, gradient(weight).data()) > 0;
}

void CpuGradients::finish_gradients() {
  for (const auto& [id, gradient] : gradients_) {
    if (std::erase(stale_, gradient.data()) > 0) fill_with_zeros(gradient);
  }
}

void CpuGradients::fill_with_zeros(std::span<float> x) {
  ex_.for_rows(std::ssize(x), 1, [&](int64_t begin, int64_t end) {
    std::fill(x.begin() + begin, x.begin() + end, 0.0F);
  });
}

void CpuGradients::refresh(const Weight& weight) {
  LoadedWeight& loaded = ex_.weights_[static_cast<size_t>(weight.id)];
  if (loaded.use != WeightUse::kVector) return;  // matrices are read where they are
  loaded.vector = decode_vector(loaded);
}

void CpuGradients::round_weight(std::span<const float> values, DType dtype, std::byte* rounded) {
  auto* const out = reinterpret_cast<uint16_t*>(rounded);
  ex_.for_rows(std::ssize(values), 1, [&](int64_t begin, int64_t end) {
    ex_.kernels_.narrow(dtype, values.data() + begin, end - begin, out + begin);
  });
}

}  // namespace limpid
