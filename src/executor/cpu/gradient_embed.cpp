// Backward of the ops that read rows by index.
#include <algorithm>

#include "executor/cpu/cpu_gradients.h"

namespace limpid {

// Threads share the columns, not the tokens: a row that occurs twice is summed in order of tokens.
void CpuGradients::embed(const Weight& table, EmbedBy by, const Activation& dy) {
  constexpr int64_t kColumns = 64;
  const std::span<const int32_t> ids = ex_.inputs_.rows_of_table(by);
  const std::span<float> sums = gradient(table);
  if (sums.empty()) return;
  if (take_stale(table)) fill_with_zeros(sums);
  const int64_t cols = table.cols;
  ex_.pool_.for_ranges(cols, kColumns, [&](int64_t begin, int64_t end, int /*thread*/) {
    for (size_t t = 0; t < ids.size(); ++t) {
      ex_.kernels_.add_rows(data(dy) + static_cast<int64_t>(t) * cols, 1, cols, begin, end,
                            sums.data() + ids[t] * cols);
    }
  });
}

Activation CpuGradients::select_outputs(const Activation& dy) {
  Activation dx = ex_.allocate(ex_.inputs_.n_tokens(), dy.cols());
  std::fill_n(data(dx), dx.rows() * dx.cols(), 0.0F);
  for (int64_t i = 0; i < dy.rows(); ++i) {
    std::copy_n(data(dy) + i * dy.cols(), dy.cols(),
                data(dx) + ex_.inputs_.output_rows[static_cast<size_t>(i)] * dy.cols());
  }
  return dx;
}

}  // namespace limpid
