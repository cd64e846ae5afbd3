// Maps tensor names of a checkpoint to members of DecoderWeights, with the expected shapes. This
// table is the only difference between families when weights are loaded.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "executor/executor.h"
#include "model/decoder.h"

namespace limpid {

// A range of the rows of a matrix, or of the elements of a vector.
struct RowRange {
  int64_t begin = 0;
  int64_t n_rows = 0;  // 0: all of them
};

// One weight: the tensor that it comes from, its expected shape, and its place in DecoderWeights.
struct TensorEntry {
  std::string name;  // in the checkpoint
  Shape shape;       // of the whole tensor: [rows, cols] or [cols]
  Weight* place;     // receives the handle
  WeightUse use = WeightUse::kProjection;
  bool required = true;
  RowOrder row_order = RowOrder::kHalfSplit;
  RowRange rows{};  // the rows that this weight uses, e.g. Q of a fused QKV matrix (not copied)
};

// An adapter of the weight at `base`.
struct AdapterEntry {
  const Weight* base;
  LowRankUpdate update;
};

// Entries point into `weights` and `adapters`. `consumed` lists tensors that the model may contain
// and that need no loading.
struct TensorTable {
  std::unique_ptr<DecoderWeights> weights;
  std::vector<TensorEntry> entries;
  std::vector<std::string> consumed;
  std::deque<AdapterEntry> adapters;  // addresses stay
};

}  // namespace limpid
