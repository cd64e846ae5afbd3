// Causal attention over the paged KV cache, one query head at a time.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "executor/check_shapes.h"
#include "executor/reference/reference_executor.h"
#include "tensor/codec.h"

namespace limpid {
namespace {

// [n_blocks, n_layers, n_kv_heads, kKvBlock, head_dim], each element rounded to the cache's dtype.
class ReferenceKvStorage final : public KvStorage {
 public:
  ReferenceKvStorage(const KvLayout& layout, std::pmr::memory_resource* memory)
      : KvStorage(layout),
        keys_(n_elements(layout, layout.n_blocks), 0.0F, memory),
        values_(n_elements(layout, layout.n_blocks), 0.0F, memory) {}

  void grow(int64_t n_blocks) override {
    keys_.resize(n_elements(layout(), n_blocks));
    values_.resize(n_elements(layout(), n_blocks));
    KvStorage::grow(n_blocks);
  }
  uint64_t block_bytes() const override { return 2 * floats_of_block() * sizeof(float); }
  void read_block(int64_t block, std::span<std::byte> out) const override {
    const size_t n = floats_of_block();
    const size_t half = n * sizeof(float);
    std::memcpy(out.data(), keys_.data() + static_cast<size_t>(block) * n, half);
    std::memcpy(out.data() + half, values_.data() + static_cast<size_t>(block) * n, half);
  }
  void write_block(int64_t block, std::span<const std::byte> content) override {
    const size_t n = floats_of_block();
    const size_t half = n * sizeof(float);
    std::memcpy(keys_.data() + static_cast<size_t>(block) * n, content.data(), half);
    std::memcpy(values_.data() + static_cast<size_t>(block) * n, content.data() + half, half);
  }

  std::span<const float> key(int64_t layer, int64_t block, int64_t head, int64_t slot) const {
    return {keys_.data() + offset(layer, block, head, slot),
            static_cast<size_t>(layout().head_dim)};
  }
  std::span<const float> value(int64_t layer, int64_t block, int64_t head, int64_t slot) const {
    return {values_.data() + offset(layer, block, head, slot),
            static_cast<size_t>(layout().head_dim)};
  }
  void store(int64_t layer, int64_t block, int64_t head, int64_t slot, std::span<const float> k,
             std::span<const float> v) {
    const int64_t at = offset(layer, block, head, slot);
    for (size_t d = 0; d < k.size(); ++d) {
      keys_[at + d] = round_to(layout().k_dtype, k[d]);
      values_[at + d] = round_to(layout().v_dtype, v[d]);
    }
  }

 private:
  static size_t n_elements(const KvLayout& l, int64_t n_blocks) {
    return static_cast<size_t>(
        Shape{n_blocks, l.n_layers, l.n_kv_heads, kKvBlock, l.head_dim}.n_elements());
  }
  size_t floats_of_block() const { return n_elements(layout(), 1); }
  int64_t offset(int64_t layer, int64_t block, int64_t head, int64_t slot) const {
    const KvLayout& l = layout();
    return (((block * l.n_layers + layer) * l.n_kv_heads + head) * kKvBlock + slot) * l.head_dim;
  }
  static float round_to(DType dtype, float x) {
    return dtype == DType::kF16 ? f16_to_f32(f32_to_f16(x)) : x;
  }

  std::pmr::vector<float> keys_;
  std::pmr::vector<float> values_;
};

// softmax(scale * q . K) V over positions [0, n) of one head (Vaswani et al. 2017, eq. 1). `key(j)`
// and `value(j)` give [head_dim] spans.
//   scores: scratch [n] f64 · sums: scratch [head_dim] f64 · q, out [head_dim]
template <typename Key, typename Value>
void attend(std::span<const float> q, int64_t n, float scale, Key&& key, Value&& value,
            std::span<double> scores, std::span<double> sums, std::span<float> out) {
  double largest = -std::numeric_limits<double>::infinity();
  for (int64_t j = 0; j < n; ++j) {
    const std::span<const float> k = key(j);
    double dot = 0;
    for (size_t d = 0; d < q.size(); ++d) dot += static_cast<double>(q[d]) * k[d];
    scores[j] = dot * scale;
    largest = std::max(largest, scores[j]);
  }
  double total = 0;
  std::ranges::fill(sums, 0.0);
  for (int64_t j = 0; j < n; ++j) {
    const double p = std::exp(scores[j] - largest);
    const std::span<const float> v = value(j);
    total += p;
    for (size_t d = 0; d < out.size(); ++d) sums[d] += p * v[d];
  }
  for (size_t d = 0; d < out.size(); ++d) out[d] = static_cast<float>(sums[d] / total);
}

}  // namespace

uint64_t ReferenceExecutor::kv_bytes(const KvLayout& layout) const {
  KvLayout stored = layout;
  stored.k_dtype = stored.v_dtype = DType::kF32;
  return stored.bytes_of(stored.n_blocks);
}

std::unique_ptr<KvStorage> ReferenceExecutor::allocate_kv(const KvLayout& layout) {
  return std::make_unique<ReferenceKvStorage>(layout, memory_);
}

Activation ReferenceExecutor::attention(const Activation& q, const Activation& k,
                                        const Activation& v, KvStorage& kv, int64_t layer,
                                        const AttentionShape& shape) {
  auto& cache = static_cast<ReferenceKvStorage&>(kv);
  check_attention(inputs_, q, k, v, cache.layout(), layer, shape);
  const int64_t head_dim = shape.head_dim;
  const int64_t group = shape.n_heads / shape.n_kv_heads;
  for (int64_t t = 0; t < q.rows(); ++t) {
    const int64_t position = inputs_.positions[t];
    for (int64_t h = 0; h < shape.n_kv_heads; ++h) {
      cache.store(layer, inputs_.block_of(inputs_.sequences[t], position), h, position % kKvBlock,
                  rows(k)[t].subspan(h * head_dim, head_dim),
                  rows(v)[t].subspan(h * head_dim, head_dim));
    }
  }
  Activation out = allocate(q.rows(), q.cols());
  pool_.for_ranges(q.rows() * shape.n_heads, 1, [&](int64_t begin, int64_t end, int /*thread*/) {
    std::vector<double> scores;
    std::vector<double> sums(static_cast<size_t>(head_dim));
    for (int64_t i = begin; i < end; ++i) {
      const int64_t t = i / shape.n_heads;
      const int64_t h = i % shape.n_heads;
      const int64_t n = inputs_.positions[t] + 1;
      scores.resize(static_cast<size_t>(n));
      const auto block = [&](int64_t j) { return inputs_.block_of(inputs_.sequences[t], j); };
      attend(
          rows(q)[t].subspan(h * head_dim, head_dim), n, shape.scale,
          [&](int64_t j) { return cache.key(layer, block(j), h / group, j % kKvBlock); },
          [&](int64_t j) { return cache.value(layer, block(j), h / group, j % kKvBlock); }, scores,
          sums, rows(out)[t].subspan(h * head_dim, head_dim));
    }
  });
  return out;
}

}  // namespace limpid
