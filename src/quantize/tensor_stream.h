// Converts a model's tensors for a new file, to another type and another order of the Q and K rows.
// One piece of one tensor is in memory at a time.
//
// There are two steps: plan_tensors decides on every tensor without reading data, so that a writer
// knows all sizes and offsets before it starts; stream_tensor then converts one tensor and hands
// its bytes to a sink.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "checkpoint/checkpoint.h"
#include "quantize/file_type.h"
#include "quantize/importance.h"
#include "quantize/input_means.h"
#include "tensor/quantize_row.h"

namespace limpid {

struct PlannedTensor {
  std::string name;  // GGUF's name
  DType from;
  DType to;
  Shape shape;
  // The order of the rows of Q and K before and after. If the two differ, `head_dim` rows form a
  // head, and `n_rot` of them belong to rotary positions.
  RowOrder order_before = RowOrder::kHalfSplit;
  RowOrder order_after = RowOrder::kHalfSplit;
  int64_t head_dim = 0;
  int64_t n_rot = 0;
  DType wanted;  // `to`, unless the row's length does not allow it

  bool moves_rows() const { return order_before != order_after; }
};

struct TensorPlan {
  std::vector<PlannedTensor> tensors;  // in file order
  uint64_t bytes_before = 0;
  uint64_t bytes_after = 0;
};

struct PlanOptions {
  // nullptr: every tensor keeps its type.
  const FileType* file_type = nullptr;
  // The order of the rows of Q and K. Nothing: GGUF's order for the architecture.
  std::optional<RowOrder> row_order{};
  bool has_importance = false;
  // For a layout without quantised types: vectors keep their type, which otherwise becomes f32, as
  // in every GGUF file; and without a file type, quantised tensors become f16.
  bool plain_types = false;
  // Allows a quantised tensor to get another quantised type. Otherwise that is an UnsupportedError.
  bool allow_requantize = false;
};

// Chooses the new type and row order of every tensor of `checkpoint`, whose names are canonical.
// Matrices get the type of the mixture; norms and biases become f32. Throws UnsupportedError,
// FormatError.
TensorPlan plan_tensors(const Checkpoint& checkpoint, const PlanOptions& options);

// What is known about the inputs of a model's matrices.
struct InputFacts {
  Importance importance{};
  InputMeans means{};

  // Returns the facts about one matrix. The spans are valid as long as this object. Throws
  // ShapeError for facts about a different number of columns.
  ColumnFacts of(std::string_view name, int64_t n_cols) const;
};

using ByteSink = std::function<void(std::span<const std::byte>)>;

// Hands the tensor's new bytes to `sink`, in pieces of whole rows of a few MiB. The result is the
// same for any number of threads. Pages of mapped files are released after they were read. Throws
// FormatError for a value that is not finite when the new type cannot represent it, and the errors
// of Checkpoint::read and `sink`.
void stream_tensor(const Checkpoint& checkpoint, const PlannedTensor& tensor,
                   const InputFacts& facts, ThreadPool& pool, const ByteSink& sink);

}  // namespace limpid
