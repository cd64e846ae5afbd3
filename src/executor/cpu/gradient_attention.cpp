// Backward of rope and of attention over whole sequences.
#include <algorithm>
#include <vector>

#include "base/check.h"
#include "executor/cpu/cpu_gradients.h"

namespace limpid {

Activation CpuGradients::rope(const RopeTable& table, int64_t head_dim, const Activation& dy) {
  const RopeAngles& angles = ex_.rope_tables_[static_cast<size_t>(table.id)];
  Activation dx = like(dy);
  ex_.for_rows(dy.rows(), dy.cols(), [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const int64_t position = ex_.inputs_.positions[static_cast<size_t>(t)];
      ex_.kernels_.rope_gradient(data(dy) + t * dy.cols(), angles.cosines(position),
                                 angles.sines(position), dy.cols() / head_dim, head_dim,
                                 table.n_rot, data(dx) + t * dy.cols());
    }
  });
  return dx;
}

// A task is one KV head of one sequence: dk and dv of the head are summed over its queries by one
// thread, in order.
AttentionGradients CpuGradients::attention(const Activation& q, const Activation& k,
                                           const Activation& v, const Activation& y,
                                           const AttentionShape& shape, const Activation& dy) {
  const StepInputs& inputs = ex_.inputs_;
  std::vector<int64_t> first;  // row of each sequence's position 0, and the end
  for (int64_t t = 0; t < q.rows(); ++t) {
    const bool begins = t == 0 || inputs.sequences[t] != inputs.sequences[t - 1];
    LIMPID_CHECK(ShapeError, begins == (inputs.positions[t] == 0),
                 "[attention] row {} is position {}: the sequence is not whole in this step", t,
                 inputs.positions[t]);
    if (begins) first.push_back(t);
  }
  first.push_back(q.rows());
  int64_t longest = 0;
  for (size_t s = 0; s + 1 < first.size(); ++s)
    longest = std::max(longest, first[s + 1] - first[s]);

  AttentionGradients result{like(q), like(k), like(v)};
  const int64_t floats = attention_gradient_floats(longest, shape.head_dim);
  const Activation scratch = ex_.allocate(ex_.pool_.size(), floats);
  const int64_t group = shape.n_heads / shape.n_kv_heads;
  const int64_t n_tasks = (std::ssize(first) - 1) * shape.n_kv_heads;
  ex_.pool_.for_ranges(n_tasks, 1, [&](int64_t begin, int64_t end, int thread) {
    for (int64_t i = begin; i < end; ++i) {
      const auto s = static_cast<size_t>(i / shape.n_kv_heads);
      const int64_t head = i % shape.n_kv_heads;
      const int64_t at_q = first[s] * q.cols() + head * group * shape.head_dim;
      const int64_t at_k = first[s] * k.cols() + head * shape.head_dim;
      ex_.kernels_.attention_gradient({data(q) + at_q, data(k) + at_k, data(v) + at_k,
                                       data(y) + at_q, data(dy) + at_q, data(result.dq) + at_q,
                                       data(result.dk) + at_k, data(result.dv) + at_k,
                                       first[s + 1] - first[s], q.cols(), k.cols(), shape.head_dim,
                                       group, shape.scale, data(scratch) + thread * floats});
    }
  });
  return result;
}

}  // namespace limpid
