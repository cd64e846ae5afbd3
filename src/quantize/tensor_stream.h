// A model's tensors on their way into another file: one at a time, piece by piece, in another type
// and another order of rows.
#pragma once

#include <cstdint>
#include <functional>
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
  std::string name;  // in our vocabulary, GGUF's
  DType from;
  DType to;
  Shape shape;
  // Of the rows of Q and K, as they lie and as they shall lie; where these differ, the rows of a
  // head, and how many of them rotary positions turn.
  RowOrder order_before = RowOrder::kHalfSplit;
  RowOrder order_after = RowOrder::kHalfSplit;
  int64_t head_dim = 0;
  int64_t n_rot = 0;
  DType wanted;  // `to`, but where the row's length does not allow it

  bool moves_rows() const { return order_before != order_after; }
};

struct TensorPlan {
  std::vector<PlannedTensor> tensors;  // in file order
  uint64_t bytes_before = 0;
  uint64_t bytes_after = 0;
  int64_t n_fallbacks = 0;  // tensors that did not get the type they should have
};

struct PlanOptions {
  // Null: every tensor keeps its type.
  const FileType* file_type = nullptr;
  // Of the rows of Q and K; nothing: as GGUF has it for the architecture.
  std::optional<RowOrder> row_order{};
  bool has_importance = false;
  // Vectors keep their type; else they become f32, as in every GGUF file.
  bool keep_vectors = false;
  // Without a file type, what is quantised becomes f16.
  bool dequantize = false;
  // Without it, UnsupportedError for a quantised tensor that would get another quantised type.
  bool allow_requantize = false;
};

// Decides about every tensor of `checkpoint`, whose names are canonical. Matrices get the type of
// the mixture, what is not quantised (norms, biases) f32. Throws UnsupportedError, FormatError.
TensorPlan plan_tensors(const Checkpoint& checkpoint, const PlanOptions& options);

// What is known of the activations that meet the matrices of a model.
struct InputFacts {
  Importance importance{};
  InputMeans means{};

  // Of one matrix; the spans live as long as this. Throws ShapeError for facts about another number
  // of columns.
  ColumnFacts of(std::string_view name, int64_t n_cols) const;
};

using ByteSink = std::function<void(std::span<const std::byte>)>;

// Hands the tensor's bytes in their new form to `sink`, in pieces of whole rows of a few MiB.
// Deterministic for any number of threads. Pages of mapped files are given back as they have been
// read. Throws FormatError when a value is not finite and its new type cannot say so, and what
// Checkpoint::read and `sink` throw.
void stream_tensor(const Checkpoint& checkpoint, const PlannedTensor& tensor,
                   const InputFacts& facts, ThreadPool& pool, const ByteSink& sink);

}  // namespace limpid
