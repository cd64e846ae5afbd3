// Keeps the error of a row from falling along the mean of the activations that meet it.
//
// The expected square of a product's error, for an error e of the row and activations of means m
// and variances v in its columns, is about
//   sum_j v_j e_j^2 + (e . m)^2.
// The searches minimise the first term. They leave the second, one number for a row, to chance, and
// it is often the greater part of the sum, because activations have much of their energy in their
// mean. So, once levels are chosen, a few elements that lie almost midway between two levels go to
// the other one: always the one that lowers the sum the most, until none does. `e . m` runs on from
// block to block (docs/adr/0005-the-quantiser-runs-the-model.md has what it gains).
#pragma once

#include <algorithm>

#include "tensor/quantize_lanes.h"

namespace limpid {

// What the search of a block knows about its columns.
struct BlockColumns {
  // How much the square of each element's error counts; null: all alike.
  const float* importance = nullptr;
  // The mean activation of each column; null: not known, and levels stay as they are.
  const float* mean = nullptr;
  float variance = 0;      // of the activations: v_j is this times the importance (or 1)
  float* drift = nullptr;  // e . m of the row so far, to which the block adds its own
};

namespace detail {

// Where each element of a block could go instead.
template <int Size>
struct Alternatives {
  Group<Size> effect;  // what that adds to e . m; 0 where it cannot go
  Group<Size> cost;    // what it adds to the sum of v e^2
  float level[Size];
};

// The element whose move lowers the objective the most, or -1.
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

}  // namespace detail

// Moves some of `levels`, of a block of groups x = scale * level + offset.
template <typename Levels, int N, int Groups>
void settle_drift(const Group<N> (&x)[Groups], const float (&scales)[Groups],
                  const float (&offsets)[Groups], const BlockColumns& columns,
                  float (&levels)[N * Groups]) {
  constexpr int kSize = N * Groups;
  if (columns.mean == nullptr) return;
  float effect[kSize];
  float cost[kSize];
  detail::Alternatives<kSize> moves;
  float drift = *columns.drift;
  for (int j = 0; j < kSize; ++j) {
    const float scale = scales[j / N];
    const float error = scale * levels[j] + offsets[j / N] - x[j / N][j % N];
    // The next level on the other side of x.
    moves.level[j] = Levels::next(levels[j], (error < 0) == (scale > 0));
    const float step = scale * (moves.level[j] - levels[j]);
    const float importance = columns.importance == nullptr ? 1 : columns.importance[j];
    // Below 0 where the gain (quantize_gain.h) has moved a level away from x: on purpose, so that
    // is no reason to move.
    cost[j] = std::max(columns.variance * importance * step * (step + 2 * error), 0.0F);
    effect[j] = step * columns.mean[j];
    drift += error * columns.mean[j];
  }
  moves.effect = Group<kSize>::load(effect);
  moves.cost = Group<kSize>::load(cost);
  for (int j; (j = detail::best_move(moves, drift)) >= 0;) {
    levels[j] = moves.level[j];
    drift += effect[j];
    moves.effect.lanes[j / 4][j % 4] = 0;  // each moves once
    moves.cost.lanes[j / 4][j % 4] = 0;
  }
  *columns.drift = drift;
}

}  // namespace limpid
