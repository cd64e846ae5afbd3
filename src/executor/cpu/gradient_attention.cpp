// Backward of rope and of attention over whole sequences.
#include <algorithm>
#include <vector>

#include "base/check.h"
#include "executor/cpu/cpu_gradients.h"

namespace limpid {

Activation CpuGradients::rope(const RopeTable& table, int64_t head_dim, const Activation& dy) {
  return ex_.rotate(dy, table, head_dim, true);
}

// A task is one KV head of one sequence: dk and dv of the head are summed over its queries by one
// thread, in order.
void CpuGradients::for_kv_heads(const AttentionGradientTask& all, const AttentionShape& shape,
                                void (*kernel)(const AttentionGradientTask& task)) {
  const StepInputs& inputs = ex_.inputs_;
  std::vector<int64_t> first;  // row of each sequence's position 0, and the end
  for (int64_t t = 0; t < inputs.n_tokens(); ++t) {
    const bool begins = t == 0 || inputs.sequences[t] != inputs.sequences[t - 1];
    LIMPID_CHECK(ShapeError, begins == (inputs.positions[t] == 0),
                 "[attention] row {} is position {}: the sequence is not whole in this step", t,
                 inputs.positions[t]);
    if (begins) first.push_back(t);
  }
  first.push_back(inputs.n_tokens());
  int64_t longest = 0;
  for (size_t s = 0; s + 1 < first.size(); ++s)
    longest = std::max(longest, first[s + 1] - first[s]);
  const int64_t floats = attention_gradient_floats(longest, shape.head_dim);
  const auto n_bytes = static_cast<uint64_t>(ex_.pool_.size() * floats) * sizeof(float);
  if (attention_scratch_.size() < n_bytes) attention_scratch_ = AlignedBuffer(n_bytes);
  float* scratch = attention_scratch_.as<float>().data();
  const int64_t n_tasks = (std::ssize(first) - 1) * shape.n_kv_heads;
  ex_.pool_.for_ranges(n_tasks, 1, [&](int64_t begin, int64_t end, int thread) {
    for (int64_t i = begin; i < end; ++i) {
      const auto s = static_cast<size_t>(i / shape.n_kv_heads);
      const int64_t head = i % shape.n_kv_heads;
      AttentionGradientTask task = all;
      const auto move = [](auto*& pointer, int64_t n) {
        if (pointer != nullptr) pointer += n;
      };
      const int64_t at_q = first[s] * all.q_stride + head * all.group * shape.head_dim;
      for (const float** x : {&task.q, &task.y, &task.dy}) move(*x, at_q);
      for (float** x : {&task.dq, &task.out}) move(*x, at_q);
      const int64_t at_k = first[s] * all.kv_stride + head * shape.head_dim;
      for (const float** x : {&task.k, &task.v}) move(*x, at_k);
      for (float** x : {&task.dk, &task.dv}) move(*x, at_k);
      task.n_tokens = first[s + 1] - first[s];
      task.scratch = scratch + thread * floats;
      task.dropout_row = first[s] * shape.n_heads + head * all.group;
      kernel(task);
    }
  });
}

AttentionGradientTask CpuGradients::task_of(const Activation& q, const Activation& k,
                                            const Activation& v, const AttentionShape& shape,
                                            const Dropout& dropout) {
  AttentionGradientTask task;
  task.q = data(q);
  task.k = data(k);
  task.v = data(v);
  task.q_stride = q.cols();
  task.kv_stride = k.cols();
  task.head_dim = shape.head_dim;
  task.group = shape.n_heads / shape.n_kv_heads;
  task.scale = shape.scale;
  task.dropout = dropout;
  task.dropout_step = shape.n_heads;
  return task;
}

AttentionGradients CpuGradients::attention(const Activation& q, const Activation& k,
                                           const Activation& v, const Activation& y,
                                           const AttentionShape& shape, const Dropout& dropout,
                                           const Activation& dy) {
  AttentionGradients result{like(q), like(k), like(v)};
  AttentionGradientTask task = task_of(q, k, v, shape, dropout);
  task.y = data(y);
  task.dy = data(dy);
  task.dq = data(result.dq);
  task.dk = data(result.dk);
  task.dv = data(result.dv);
  for_kv_heads(task, shape, ex_.kernels_.attention_gradient);
  return result;
}

Activation CpuGradients::attend_whole(const Activation& q, const Activation& k, const Activation& v,
                                      const AttentionShape& shape, const Dropout& dropout) {
  Activation y = like(q);
  AttentionGradientTask task = task_of(q, k, v, shape, dropout);
  task.out = data(y);
  for_kv_heads(task, shape, ex_.kernels_.attend_whole);
  return y;
}

}  // namespace limpid
