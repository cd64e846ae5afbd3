// Weights and their gradients; the backward ops have files of their own.
#include "executor/cpu/cpu_gradients.h"

#include <algorithm>

#include "base/check.h"

namespace limpid {

void CpuGradients::keep_gradient(const Weight& weight, std::span<float> gradient) {
  const LoadedWeight& source = loaded(weight);
  LIMPID_CHECK(ShapeError, std::ssize(gradient) == source.tensor.shape.n_elements(),
               "[keep_gradient] {} elements for {} {}", gradient.size(), source.name,
               source.tensor.to_string());
  LIMPID_CHECK(UnsupportedError,
               is_plain_float(source.tensor.dtype) && source.rows.ranges().size() <= 1,
               "{} is {}: only tensors of f32, f16 and bf16 have a gradient", source.name,
               source.tensor.to_string());
  gradients_.resize(std::max(gradients_.size(), static_cast<size_t>(weight.id) + 1));
  gradients_[static_cast<size_t>(weight.id)] = gradient;
}

std::span<float> CpuGradients::gradient(const Weight& weight) const {
  const auto id = static_cast<size_t>(weight.id);
  return weight && id < gradients_.size() ? gradients_[id] : std::span<float>{};
}

// Tied weights have one gradient.
void CpuGradients::begin_gradients() {
  stale_.clear();
  for (const std::span<float> gradient : gradients_) {
    if (!gradient.empty()) stale_.push_back(gradient.data());
  }
}

bool CpuGradients::take_stale(const Weight& weight) {
  return std::erase(stale_, gradient(weight).data()) > 0;
}

void CpuGradients::finish_gradients() {
  for (const std::span<float> gradient : gradients_) {
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
