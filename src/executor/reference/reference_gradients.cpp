// Weights and their gradients; the backward ops have files of their own.
#include "executor/reference/reference_gradients.h"

#include <algorithm>

#include "executor/check_shapes.h"
#include "tensor/codec.h"

namespace limpid {

void ReferenceGradients::keep_gradient(const Weight& weight, std::span<float> gradient) {
  check_gradient(ex_.weight(weight), gradient.size());
  gradients_[weight.id] = gradient;
}

void ReferenceGradients::begin_gradients() {
  for (const auto& [id, gradient] : gradients_) std::ranges::fill(gradient, 0.0F);
}

void ReferenceGradients::refresh(const Weight& weight) {
  ReferenceExecutor::LoadedWeight& loaded = ex_.weights_[static_cast<size_t>(weight.id)];
  if (!loaded.vector.empty()) loaded.vector = decode_vector(loaded.source);
}

std::vector<float> ReferenceGradients::matrix(const Weight& weight) const {
  const ReferenceExecutor::LoadedWeight& loaded = ex_.weights_[static_cast<size_t>(weight.id)];
  std::vector<float> values(static_cast<size_t>(weight.rows * weight.cols));
  for (int64_t r = 0; r < weight.rows; ++r) {
    decode_row(loaded.source.tensor.dtype, loaded.rows.row(r),
               {values.data() + r * weight.cols, static_cast<size_t>(weight.cols)});
  }
  return values;
}

ReferenceGradients::Sums::Sums(ReferenceGradients& owner, const Weight& weight) {
  if (!owner.keeps_gradient(weight)) return;
  gradient_ = owner.gradients_[weight.id];
  cols_ = weight.cols;
  sums_.assign(gradient_.size(), 0.0);
}

ReferenceGradients::Sums::~Sums() {
  for (size_t i = 0; i < sums_.size(); ++i) gradient_[i] += static_cast<float>(sums_[i]);
}

}  // namespace limpid
