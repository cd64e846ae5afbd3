// Checkpoint names -> places in DecoderWeights, with shapes. Families differ in their table only.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "executor/executor.h"
#include "model/decoder.h"

namespace limpid {

// Some rows of a matrix, or elements of a vector.
struct RowRange {
  int64_t begin = 0;
  int64_t n_rows = 0;  // 0: all of them
};

struct TensorEntry {
  std::string name;  // in the checkpoint
  Shape shape;       // of the whole tensor: [rows, cols] or [cols]
  Weight* place;     // where its handle goes
  WeightUse use = WeightUse::kProjection;
  bool required = true;
  RowOrder row_order = RowOrder::kHalfSplit;
  RowRange rows{};  // what of the tensor this weight is: Q of a fused Q, K, V; a view, no copy
};

// Entries point into `weights`; tensors the model may contain but that need no loading stand in
// `consumed`.
struct TensorTable {
  std::unique_ptr<DecoderWeights> weights;
  std::vector<TensorEntry> entries;
  std::vector<std::string> consumed;
};

}  // namespace limpid
