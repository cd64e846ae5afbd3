#include "insight/attention_map.h"

#include <algorithm>
#include <unordered_map>

#include "base/divide_up.h"
#include "base/thread_pool.h"
#include "executor/cpu/isa.h"
#include "executor/cpu/matrix_product.h"
#include "insight/row_kernels.h"

namespace limpid {

constexpr int64_t kMostTiles = 16;  // along one side of the small picture

AttentionMap::AttentionMap(int64_t n_tokens, int64_t n_kept)
    : n_tokens_(n_tokens),
      n_kept_(std::min(n_kept, std::max<int64_t>(n_tokens - 1, 0))),
      n_tiles_(std::min(n_tokens, kMostTiles)),
      tiles_(size_of(n_tiles_ * n_tiles_)) {
  first_.reserve(size_of(n_tokens));
  kept_.reserve(size_of(n_tokens * n_kept_));
  column_maxima_.reserve(size_of(n_tokens));
}

std::vector<int32_t> earlier_copies(std::span<const int32_t> token_ids) {
  std::unordered_map<int32_t, int32_t> last;
  std::vector<int32_t> copies;
  for (const int32_t id : token_ids) {
    const auto [found, is_new] = last.try_emplace(id, -1);
    copies.push_back(found->second);
    found->second = static_cast<int32_t>(copies.size()) - 1;
  }
  return copies;
}

// The earlier copies of a token are walked from the last one to the first. The copy at s has the
// token behind it at s + 1, which is the row's own token if the two are neighbours.
void AttentionMap::add_row(std::span<const float> weights, std::span<const int32_t> copies) {
  const auto t = static_cast<int64_t>(first_.size());
  double same = 0;
  double after_same = 0;
  const int32_t last_copy = copies[size_of(t)];
  for (int32_t s = last_copy; s >= 0; s = copies[size_of(s)]) {
    same += weights[size_of(s)];
    after_same += weights[size_of(s) + 1];
  }
  first_.push_back(weights[0]);
  sums_.itself += weights[size_of(t)];
  if (t > 0) {
    sums_.first += weights[0];
    sums_.previous += weights[size_of(t - 1)];
  }
  sums_.same += same;
  sums_.after_same += after_same;
  if (last_copy >= 0) ++n_copies_;
  add_strongest(weights);
  add_tiles(weights);
}

// The search for the strongest begins behind column 0, whose weight is kept apart.
void AttentionMap::add_strongest(std::span<const float> weights) {
  const size_t end = kept_.size() + size_of(n_kept_);
  Ranking strongest(n_kept_);
  strongest.offer_all(weights.data() + 1, std::ssize(weights) - 1, 1);
  for (const auto& [weight, column] : strongest.kept())
    kept_.push_back({static_cast<int32_t>(column), weight});
  kept_.resize(end);
}

// Row t belongs to row t * n_tiles / n_tokens of the small picture, and so do columns. Of 512
// tokens a tile is a square of 32 rows and columns. Its largest weight is kept and not its mean,
// because a single strong weight, which is what a head is about, would vanish in a mean of 1,024
// numbers. The largest weights of the columns are gathered over the rows of a tile, and those of
// tiles once, after the last row.
void AttentionMap::add_tiles(std::span<const float> weights) {
  const auto t = std::ssize(weights) - 1;
  const int64_t tile_row = t * n_tiles_ / n_tokens_;
  column_maxima_.resize(weights.size());
  row_kernels().raise(weights.data(), t + 1, 1, column_maxima_.data());
  if (t + 1 < n_tokens_ && (t + 1) * n_tiles_ / n_tokens_ == tile_row) return;
  const auto columns = column_maxima_.begin();
  for (int64_t i = 0, begin = 0; begin <= t; ++i) {  // column s belongs to s * n_tiles / n_tokens
    const int64_t end = std::min(t + 1, divide_up((i + 1) * n_tokens_, n_tiles_));
    tiles_[size_of(tile_row * n_tiles_ + i)] = *std::max_element(columns + begin, columns + end);
    begin = end;
  }
  column_maxima_.clear();
}

std::span<const AttentionMap::Kept> AttentionMap::row(int64_t t) const {
  return std::span(kept_).subspan(size_of(t * n_kept_), size_of(n_kept_));
}

HeadHabits AttentionMap::habits() const {
  const int64_t n_rows = std::ssize(first_);
  const auto mean = [](double sum, int64_t n) { return n > 0 ? sum / static_cast<double>(n) : 0; };
  return {mean(sums_.first, n_rows - 1), mean(sums_.itself, n_rows),
          mean(sums_.previous, n_rows - 1), mean(sums_.same, n_copies_),
          mean(sums_.after_same, n_copies_)};
}

// The scores of all rows are one product of matrices, Q K^T. The product also computes scores that
// a row does not see, those above the diagonal: at most n_rows of them a row, which is why the
// caller takes rows in small blocks. A softmax over what each row sees then turns scores into
// weights, in place.
void attention_weights(const AttentionRows& rows, std::vector<float>& scratch,
                       std::span<float> weights) {
  const Kernels& kernels = *choose_isa("").kernels;
  ThreadPool alone(1);
  scratch.resize(size_of(multiply_scratch_floats(1)));
  MatrixProduct scores;  // q . k for all keys, also those that a row does not see
  scores.right = rows.keys;
  scores.right_stride = rows.key_stride;
  scores.right_transposed = true;
  scores.cols = rows.first_position + rows.n_rows;
  scores.y = weights.data();
  multiply(kernels, alone, {rows.queries, rows.query_stride, rows.n_rows, rows.head_dim},
           {&scores, 1}, scratch.data());
  for (int64_t i = 0; i < rows.n_rows; ++i) {
    float* row = weights.data() + i * scores.cols;
    const int64_t n_visible = rows.first_position + i + 1;
    const float sum = kernels.exponentials(row, n_visible, rows.scale).sum;
    kernels.scale_elements(row, 1 / sum, n_visible, row);
  }
}

}  // namespace limpid
