// Backward of the ops that read rows by index.
#include <algorithm>

#include "executor/reference/reference_gradients.h"

namespace limpid {

void ReferenceGradients::embed(const Weight& table, EmbedBy by, const Activation& dy) {
  const std::span<const int32_t> ids = ex_.inputs().rows_of_table(by);
  Sums sums(*this, table);
  if (!sums) return;
  for (size_t t = 0; t < ids.size(); ++t) {
    const std::span<const float> row = ex_.rows(dy)[static_cast<int64_t>(t)];
    for (size_t i = 0; i < row.size(); ++i) sums.row(ids[t])[i] += row[i];
  }
}

Activation ReferenceGradients::select_outputs(const Activation& dy) {
  const StepInputs& inputs = ex_.inputs();
  Activation dx = ex_.allocate(inputs.n_tokens(), dy.cols());
  std::fill_n(ex_.rows(dx).data, dx.rows() * dx.cols(), 0.0F);
  for (int64_t i = 0; i < dy.rows(); ++i)
    std::ranges::copy(ex_.rows(dy)[i], ex_.rows(dx)[inputs.output_rows[i]].begin());
  return dx;
}

}  // namespace limpid
