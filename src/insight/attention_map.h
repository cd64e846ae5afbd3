// Where a head looks: its attention weights over a text, kept in little memory.
//
// The weights of one head over T tokens are a triangle of T (T + 1) / 2 numbers; a model of 32
// layers and 32 heads has 1,024 of them, 134 million numbers for 512 tokens. Most are near 0. A map
// keeps these numbers: for each row the weight on the first token, where heads look that have
// nothing to do ("attention sink", Xiao et al. 2023, arXiv:2309.17453), and the strongest K others;
// a small picture of the triangle; and means that tell what the head does.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace limpid {

// Habits of a head: the mean weight that it gives to certain tokens, over the rows that have such
// tokens. Each is in [0, 1].
struct HeadHabits {
  double first = 0;  // the first token, of rows that are not the first
  double itself = 0;
  double previous = 0;
  double same = 0;  // earlier tokens that equal the row's own
  // The tokens behind those: the second B of A B … A B is predicted by a head that looks from the
  // second A to the first B (induction head; Olsson et al. 2022, arXiv:2209.11895).
  double after_same = 0;
};

// For each token the position of the copy of it that came last before it, -1 for a new token: of
// A B C A A, -1 -1 -1 0 3.
std::vector<int32_t> earlier_copies(std::span<const int32_t> token_ids);

// The weights of one head over T tokens. Rows are added in order.
class AttentionMap {
 public:
  struct Kept {
    int32_t column = -1;  // -1: none, the row is shorter
    float weight = 0;
  };

  // `n_kept` weights of each row besides the first token's.
  AttentionMap(int64_t n_tokens, int64_t n_kept);

  // The weights of row t, softmax(scale q_t . K): t + 1 of them. `copies` are earlier_copies of
  // the text.
  void add_row(std::span<const float> weights, std::span<const int32_t> copies);

  int64_t n_kept() const { return n_kept_; }
  std::span<const float> first() const { return first_; }  // [n_rows]
  // The strongest of row t, descending.
  std::span<const Kept> row(int64_t t) const;
  // [n_tiles, n_tiles], the largest weight in each square of the triangle, row by row.
  int64_t n_tiles() const { return n_tiles_; }
  std::span<const float> tiles() const { return tiles_; }
  HeadHabits habits() const;

 private:
  void add_strongest(std::span<const float> weights);
  void add_tiles(std::span<const float> weights);

  int64_t n_tokens_;
  int64_t n_kept_;
  int64_t n_tiles_;
  std::vector<float> first_;
  std::vector<Kept> kept_;  // [n_rows, n_kept]
  std::vector<float> tiles_;
  std::vector<float> column_maxima_;  // [n_rows], over the rows of the current row of tiles
  HeadHabits sums_;                   // of the weights whose means are the habits
  int64_t n_copies_ = 0;              // rows whose token occurred before
};

// Queries of one head at consecutive positions, and the keys that they see.
struct AttentionRows {
  const float* queries = nullptr;  // [n_rows], query_stride floats apart, head_dim each
  int64_t query_stride = 0;
  int64_t n_rows = 0;
  const float* keys = nullptr;  // of positions 0 … first_position + n_rows - 1
  int64_t key_stride = 0;
  int64_t head_dim = 0;
  int64_t first_position = 0;  // of the first query
  float scale = 1;             // > 0
};

// The attention weights of one head, the same as the attention op computes:
//   weights[i][s] = softmax over s <= position(i) of scale * q[i] . k[s]
// weights [n_rows, first_position + n_rows]; columns behind a row's own position are undefined.
// `scratch` is room that a caller keeps from one call to the next.
void attention_weights(const AttentionRows& rows, std::vector<float>& scratch,
                       std::span<float> weights);

}  // namespace limpid
