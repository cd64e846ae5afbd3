// Checkpoint names -> places in DecoderWeights, with shapes. Families differ in their table only.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "executor/executor.h"
#include "model/decoder.h"

namespace limpid {

struct TensorEntry {
  std::string name;  // in the checkpoint
  Shape shape;       // [rows, cols] or [cols]
  Weight* place;     // where its handle goes
  WeightUse use = WeightUse::kProjection;
  bool required = true;
  RowOrder row_order = RowOrder::kAsStored;
};

// Entries point into `weights`; tensors the model may contain but that need no loading stand in
// `consumed`.
struct TensorTable {
  std::unique_ptr<DecoderWeights> weights;
  std::vector<TensorEntry> entries;
  std::vector<std::string> consumed;
};

}  // namespace limpid
