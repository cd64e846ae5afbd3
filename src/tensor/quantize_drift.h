// Keeps the error of a row from adding up in a product with the mean activation.
//
// A row of weights is multiplied with activations whose columns have means m_j and variances v_j.
// If the row has the errors e_j, the expected square of the product's error is about
//   sum_j v_j e_j^2 + (e . m)^2.
// The searches for scales minimise the first term. The second depends on one number for the whole
// row, its drift e . m. The searches leave the drift to chance, and it is often the greater part of
// the sum, because activations have much of their energy in their mean.
//
// So, once the levels are chosen, a few elements that lie almost midway between two levels move to
// the other level: always the element whose move lowers the sum the most, until none does. The
// drift is carried from block to block of a row. input_means.h has an example, and
// docs/adr/0005-the-quantiser-runs-the-model.md the measured gain.
#pragma once

#include <algorithm>

#include "tensor/quantize_lanes.h"

namespace limpid {

// What the search of a block knows about its columns.
struct BlockColumns {
  // How much the square of each element's error counts; null: 1 for each.
  const float* importance = nullptr;
  // The mean activation of each column; null: unknown, and levels do not move.
  const float* mean = nullptr;
  float variance = 0;      // v_j is this times the importance (or 1)
  float* drift = nullptr;  // e . m of the row's blocks so far; the search adds that of this block
};

// For each element of a block, its second nearest level and what a move to it would change.
template <int Size>
struct Alternatives {
  Group<Size> effect;  // what the move adds to e . m; 0 without another level
  Group<Size> cost;    // what the move adds to sum_j v_j e_j^2
  float level[Size];
};

// The element whose move lowers sum_j v_j e_j^2 + drift^2 the most, or -1 if none does.
template <int Size>
int best_move(const Alternatives<Size>& moves, float drift) {
  const Float4 twice = all_lanes(2 * drift);
  Float4 least = {};
  Float4 found = all_lanes(-1);
  for (int i = 0; i < Group<Size>::kRegisters; ++i) {
    const Float4 effect = moves.effect.lanes[i];
    const Float4 change = moves.cost.lanes[i] + effect * (twice + effect);
    found = change < least ? all_lanes(static_cast<float>(i)) : found;
    least = smaller(change, least);
  }
  int best = -1;
  float lowest = 0;
  for (int lane = 0; lane < 4; ++lane) {
    if (!(least[lane] < lowest)) continue;
    lowest = least[lane];
    best = 4 * static_cast<int>(found[lane]) + lane;
  }
  return best;
}

// Moves some of the `levels` of a block, whose groups are x = scale * level + offset, and adds the
// block's e . m to *columns.drift. Does nothing if the means are unknown.
template <typename Levels, int N, int Groups>
void settle_drift(const Group<N> (&x)[Groups], const float (&scales)[Groups],
                  const float (&offsets)[Groups], const BlockColumns& columns,
                  float (&levels)[N * Groups]) {
  constexpr int kSize = N * Groups;
  if (columns.mean == nullptr) return;
  float effect[kSize];
  float cost[kSize];
  Alternatives<kSize> moves;
  float drift = *columns.drift;
  for (int j = 0; j < kSize; ++j) {
    const float scale = scales[j / N];
    const float error = scale * levels[j] + offsets[j / N] - x[j / N][j % N];
    // The next level on the other side of x.
    moves.level[j] = Levels::next(levels[j], (error < 0) == (scale > 0));
    const float step = scale * (moves.level[j] - levels[j]);
    const float importance = columns.importance == nullptr ? 1 : columns.importance[j];
    // Negative where the correction of the gain (quantize_gain.h) has made the second level the
    // nearer one. That correction is on purpose, so it must not cause a move.
    cost[j] = std::max(columns.variance * importance * step * (step + 2 * error), 0.0F);
    effect[j] = step * columns.mean[j];
    drift += error * columns.mean[j];
  }
  moves.effect = Group<kSize>::load(effect);
  moves.cost = Group<kSize>::load(cost);
  for (int j; (j = best_move(moves, drift)) >= 0;) {
    levels[j] = moves.level[j];
    drift += effect[j];
    moves.effect.lanes[j / 4][j % 4] = 0;  // each moves once
    moves.cost.lanes[j / 4][j % 4] = 0;
  }
  *columns.drift = drift;
}

}  // namespace limpid
