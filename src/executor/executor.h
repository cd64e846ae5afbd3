// The interface between the transformer and the machine. model/decoder.cpp is the forward pass,
// written once, as calls of the methods of an Executor. The executor decides what an op does:
// reference/ defines each op, cpu/ and gpu/ compute it fast, others record it or show it. op_list.h
// has the ops.
//
// The contract (checked by tests/executor/contract_*_test.cpp):
// - Each op returns a new Activation; no op works in place. Memory is reused only after its handle
//   was destroyed.
// - All that changes from step to step is in StepInputs; ops receive handles. Between
//   begin_step and end_step an op allocates nothing, copies nothing to the host, and uses the
//   same addresses for the same shape.
// - Every output element is summed in one order that depends on shapes of weights only: the result
//   for a token is bit-identical for any number of threads, any batch it is in, any chunking of its
//   prompt.
// - `read` waits for what was computed before it. It may be called after end_step, or within the
//   step, which then costs the time of a copy: for executors that look into a step, or move an
//   activation to another device (executor/layered_executor.h).
// - One thread drives an executor. Only load_*, allocate_kv, reserve, begin_step and read may
//   throw; an op throws nothing but ShapeError, for operands that do not fit (a bug of the caller),
//   and ResourceError where the driver of a device fails. A call that throws leaves the executor
//   usable.
// - The memory that `reserve` sets aside is enough for kMostActivations at once, one of them
//   logits. An executor that keeps more (train/tape.h) needs more: its ops may throw
//   ResourceError, which ends the step.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "executor/place.h"
#include "executor/unary_kind.h"
#include "tensor/row_order.h"
#include "tensor/tensor.h"

namespace limpid {

// ---- activations --------------------------------------------------------------------------------

class Executor;

// A tensor inside a forward pass: [rows, cols] f32, in memory of its executor (see Executor::view).
// Move-only handle. When the handle is destroyed, the executor may use the memory again, so the
// decoder simply lets its variables go out of scope. An executor that must keep all activations (a
// tape) ignores the release.
class Activation {
 public:
  Activation() = default;
  Activation(Executor* executor, int32_t id, int64_t rows, int64_t cols)
      : executor_(executor), id_(id), rows_(rows), cols_(cols) {}
  Activation(Activation&& other) noexcept { *this = std::move(other); }
  Activation& operator=(Activation&& other) noexcept {
    std::swap(executor_, other.executor_);
    std::swap(id_, other.id_);
    std::swap(rows_, other.rows_);
    std::swap(cols_, other.cols_);
    return *this;
  }
  ~Activation();  // calls Executor::release

  int32_t id() const { return id_; }
  int64_t rows() const { return rows_; }
  int64_t cols() const { return cols_; }
  explicit operator bool() const { return executor_ != nullptr; }

 private:
  Executor* executor_ = nullptr;
  int32_t id_ = -1;
  int64_t rows_ = 0;
  int64_t cols_ = 0;
};

// ---- weights ------------------------------------------------------------------------------------

// The use of a weight; an executor keeps the layouts that these uses need.
enum class WeightUse : uint8_t {
  kVector,         // norms, biases: one row, read whole
  kLookup,         // embedding tables: rows read by index
  kProjection,     // [out, in] matrix of `linear`
  kHead,           // the same, for rows whose logits are wanted: [vocab_size, d_model]
  kLookupAndHead,  // tied embedding
};

constexpr bool is_head(WeightUse use) {
  return use == WeightUse::kHead || use == WeightUse::kLookupAndHead;
}
// Whether `linear` multiplies with it.
constexpr bool is_matrix(WeightUse use) { return use == WeightUse::kProjection || is_head(use); }

struct WeightSource {
  std::string name;   // as in the file, for messages
  TensorView tensor;  // [rows, cols] or [cols]; must outlive the executor (the checkpoint's map)
  WeightUse use = WeightUse::kProjection;
  // For Q and K, and for their biases and norms: the order of the rows (or elements) in each head
  // of `head_dim`. The executor's results are always in half-split order (tensor/row_order.h).
  RowOrder row_order = RowOrder::kHalfSplit;
  int64_t head_dim = 0;
  // If not empty, `tensor` has no data: its rows are the rows of these views, one view after
  // another. Only for matrices of plain types.
  std::vector<TensorView> row_parts = {};
  // The block that the weight belongs to: -1 for what comes before the first block, the number of
  // blocks for what comes after the last one. A tied embedding has -1.
  int64_t layer = -1;
  // Memory has no room for a copy. The CPU executor then reads the matrix from the file each step.
  bool stays_in_file = false;
};

// Where the rows of a weight lie: in one range of memory, or in several.
class StoredRows {
 public:
  struct Range {
    int64_t begin;  // rows [begin, end) of the weight
    int64_t end;
    const std::byte* data;  // without gaps
  };

  StoredRows() = default;
  // Throws ShapeError when the parts do not make up the tensor, or are quantised.
  explicit StoredRows(const WeightSource& source);
  explicit StoredRows(const TensorView& whole);

  const std::byte* row(int64_t i) const;
  std::span<const Range> ranges() const { return ranges_; }

 private:
  std::vector<Range> ranges_;  // ascending
  uint64_t row_bytes_ = 0;
};

// The weight as one f32 vector, half-split, for WeightUse::kVector.
std::vector<float> decode_vector(const WeightSource& source);

// Handle of a loaded weight. An empty handle (false) means that the model lacks this weight.
struct Weight {
  int32_t id = -1;
  int64_t rows = 0;  // outputs of a projection, entries of a table, 1 for a vector
  int64_t cols = 0;
  explicit operator bool() const { return id >= 0; }
};

// Handle of a table of rotary angles: cos and sin for [n_positions, n_rot / 2].
struct RopeTable {
  int32_t id = -1;
  int64_t n_rot = 0;  // leading elements of a head that are rotated
};

// ---- KV cache -----------------------------------------------------------------------------------

// Keys and values lie in blocks of kKvBlock absolute positions: block i of a sequence holds
// positions [i * kKvBlock, (i + 1) * kKvBlock).
inline constexpr int64_t kKvBlock = 64;

struct KvLayout {
  int64_t n_layers = 0;
  int64_t n_kv_heads = 0;
  int64_t head_dim = 0;
  int64_t n_blocks = 0;         // physical blocks, shared by all sequences
  DType k_dtype = DType::kF16;  // kF32 or kF16
  DType v_dtype = DType::kF16;
  // Of n blocks; throws ShapeError on overflow. `v_head_dim`: where the values of a head are
  // padded.
  uint64_t bytes_of(int64_t n, int64_t v_head_dim = 0) const;
};

// The executor's memory of keys and values; the model keeps only the bookkeeping
// (model/kv_cache.h). This base class holds nothing: it is for executors that compute nothing.
class KvStorage {
 public:
  // Throws UnsupportedError for other dtypes.
  explicit KvStorage(KvLayout layout);
  virtual ~KvStorage() = default;
  const KvLayout& layout() const { return layout_; }

  // Adds blocks, up to `n_blocks` in all. The content of the blocks that are there stays. Throws
  // ResourceError and then changes nothing.
  virtual void grow(int64_t n_blocks) { layout_.n_blocks = n_blocks; }
  // Bytes that `grow` allocates before it gives any back: those of the new blocks, and of all where
  // they are copied. Throws ShapeError on overflow.
  virtual uint64_t bytes_to_grow(int64_t n_blocks) const;
  // The content of one block, in the executor's own format: to copy it, or to keep it in a file.
  virtual uint64_t block_bytes() const { return 0; }
  virtual void read_block(int64_t /*block*/, std::span<std::byte> /*out*/) const {}
  virtual void write_block(int64_t /*block*/, std::span<const std::byte> /*content*/) {}

 private:
  KvLayout layout_;
};

// ---- one step -----------------------------------------------------------------------------------

// What chooses the rows of a table for the tokens of a step.
enum class EmbedBy : uint8_t { kTokenId, kPosition };

// A ragged list of (token, sequence, position). Owned by the executor; filled before begin_step.
struct StepInputs {
  std::vector<int32_t> token_ids;  // [n_tokens]
  std::vector<int32_t> positions;  // [n_tokens], absolute, ascending within a sequence
  // [n_tokens], index into block_table_begin; tokens of one are adjacent
  std::vector<int32_t> sequences;
  std::vector<int32_t> output_rows;  // [n_outputs], ascending: the tokens whose logits are wanted
  std::vector<int32_t> block_table;  // physical blocks of all sequences, one after another
  std::vector<int32_t> block_table_begin;  // [n_sequences + 1], offsets into block_table

  int64_t n_tokens() const { return static_cast<int64_t>(token_ids.size()); }
  int64_t n_outputs() const { return static_cast<int64_t>(output_rows.size()); }
  std::span<const int32_t> rows_of_table(EmbedBy by) const {  // [n_tokens]
    return by == EmbedBy::kTokenId ? token_ids : positions;
  }
  // Physical block that holds `position` of sequence `s`.
  int32_t block_of(int64_t s, int64_t position) const {
    return block_table[block_table_begin[s] + position / kKvBlock];
  }
  void clear();
};

// Activations that are alive at the same time within a step, the result of an op included.
inline constexpr int64_t kMostActivations = 8;

// The activations that a step holds, computed from the sizes of a model.
struct StepSize {
  // A moment of the step at which many activations are alive.
  struct Moment {
    int64_t of_tokens;       // columns of all activations with n_tokens rows, results included
    int64_t of_outputs = 0;  // and of those with n_outputs rows
    int64_t input = 0;       // columns of the input of `linear`, with n_tokens rows; 0: another op
  };
  int64_t n_tokens = 0;
  int64_t n_outputs = 0;
  int64_t n_positions = 0;    // of the longest sequence
  int64_t head_dim = 0;       // of the KV cache; 0 without one
  int64_t widest = 0;         // columns of an activation, logits aside
  int64_t widest_head = 0;    // columns of logits; 0 without an output head
  bool is_quantized = false;  // the matrices of the blocks
  std::vector<Moment> moments = {};
};

struct AttentionShape {
  int64_t n_heads = 0;
  int64_t n_kv_heads = 0;
  int64_t head_dim = 0;
  float scale = 0;  // usually 1 / sqrt(head_dim)
};

// One projection of `linear`: y = x * weight^T + bias.
struct Projection {
  Weight weight;
  Weight bias;   // or none
  Activation y;  // result, [x.rows, weight.rows]
};

// Some columns of a product [rows, cols]; valid during one call of SeePart. Element (i, j) of the
// product is values[i * stride + j - begin].
struct ColumnPart {
  int64_t begin = 0;  // a multiple of kPartColumns
  int64_t end = 0;    // exclusive: also such a multiple, or the number of columns
  const float* values = nullptr;
  int64_t stride = 0;
};
inline constexpr int64_t kPartColumns = 512;
// May be called by several threads at once.
using SeePart = std::function<void(const ColumnPart& part)>;

class GradientOps;
class ThreadPool;

class Executor {
 public:
  virtual ~Executor() = default;
  virtual std::string_view name() const = 0;  // "reference", "cpu", "opencl", "cuda"

  // -- memory --
  // Bytes that load_weight would allocate for `source`, besides the mapped file: 0 for a weight
  // that is read from the map. Looks only at type, shape and use, not at data.
  virtual uint64_t weight_bytes(const WeightSource& source) const = 0;
  // Bytes that allocate_kv would allocate.
  virtual uint64_t kv_bytes(const KvLayout& layout) const {
    return layout.bytes_of(layout.n_blocks);
  }
  // Bytes that load_rope would allocate for n_rot / 2 frequencies: f32, unless an executor
  // overrides it.
  virtual uint64_t rope_bytes(int64_t n_rot, int64_t n_positions) const;
  // Bytes that steps of this size would take for their activations.
  virtual uint64_t step_bytes(const StepSize& size) const;
  // Free bytes of the memory that holds weights, KV cache and activations: the host's, unless the
  // executor has memory of its own. 0: unknown.
  virtual uint64_t available_memory() const;
  // Names that memory. Executors that give the same name share it.
  virtual std::string memory_name() const { return "host"; }

  // -- loading --
  // Loads a weight; may keep the view. Throws ShapeError, UnsupportedError for a dtype or use
  // that it does not compute with, ResourceError.
  virtual Weight load_weight(const WeightSource& source) = 0;
  // `inverse_frequencies` [n_rot / 2]; the angle in radians of pair i at position p is
  // p * inverse_frequencies[i], in f64.
  virtual RopeTable load_rope(std::span<const double> inverse_frequencies, int64_t n_positions) = 0;
  // Allocates memory of this layout, with arbitrary content. Throws ResourceError.
  virtual std::unique_ptr<KvStorage> allocate_kv(const KvLayout& layout) = 0;
  // Makes room for steps of up to these sizes with the weights loaded so far, so that steps need no
  // allocation. Outside a step; may be called again to grow. Throws ResourceError; what was
  // reserved before stays.
  virtual void reserve(int64_t max_tokens, int64_t max_outputs) = 0;

  // -- a step --
  virtual StepInputs& inputs() = 0;  // fill, then begin_step
  virtual void begin_step() = 0;     // if it throws, no step has begun
  virtual void end_step() = 0;       // never throws

  // -- ops, between begin_step and end_step --
  // embed, add, rms_norm, linear, attention, …: op_list.h declares and describes them.
#define LIMPID_OP(result, name, parameters, arguments) virtual result name parameters = 0;
#include "executor/op_list.h"

  // The product of `linear` with one weight, shown in parts: each column to one call of `see`, in
  // any order. The bits are those of `linear`. An executor may show a part while it lies in a cache
  // and then forget it, so that no memory holds the product: a caller who wants only the softmax of
  // 49,152 logits saves most of the time that it takes to write and read them.
  virtual void linear_in_parts(const Activation& x, const Weight& weight, const SeePart& see);
  // Shows an activation as one part, where it lies or copied to the host.
  void show_whole(const Activation& y, const SeePart& see);

  // Reports the name of an activation, for executors that show what a step computes (a probe, a
  // trace); others ignore it. layer -1: outside the blocks.
  virtual void observe(Place /*place*/, int64_t /*layer*/, const Activation& /*x*/) {}
  // Called before `observe`. An executor that intervenes may put another activation of the same
  // shape in the place of `x`; the pass goes on with that one.
  virtual void intervene(Place /*place*/, int64_t /*layer*/, Activation& /*x*/) {}
  // Returns a new activation [rows, cols] with `values` of the host, within a step. Throws
  // UnsupportedError if the executor cannot do that, and ShapeError for a wrong number of values.
  virtual Activation write(std::span<const float> values, int64_t rows, int64_t cols);

  // The threads that compute the ops, for loops of a caller between two ops; null when the executor
  // has none. A loop over the threads of a second pool would first wake those, and the next op
  // would then have to wake these.
  virtual ThreadPool* threads() { return nullptr; }

  // The backward formulas of the ops, for training; null when the executor has none.
  virtual GradientOps* gradient_ops() { return nullptr; }

  // -- after end_step, or within a step --
  // Copies an activation to the host; out.size() == rows * cols.
  virtual void read(const Activation& x, std::span<float> out) = 0;
  // The values of an activation where they lie, [rows * cols], as long as its handle lives; empty
  // if the host cannot read them there. For 100 MB of logits a copy would take long.
  virtual std::span<const float> view(const Activation& /*x*/) const { return {}; }
  // Copies the k best elements of each row: their columns and their values, [rows, k] both, the
  // largest first, and of equal ones the lowest column. An element that is not finite counts as
  // larger than all others. 1 <= k <= x.cols(). Throws ShapeError for another k.
  virtual void read_best(const Activation& x, int64_t k, std::span<int32_t> columns,
                         std::span<float> values);
  // The largest k for which read_best costs less than `read`. 0: there is none.
  virtual int64_t most_best() const { return 0; }

 protected:
  friend class Activation;
  virtual void release(int32_t id) noexcept = 0;
};

inline Activation::~Activation() {
  if (executor_ != nullptr) executor_->release(id_);
}

// Begins a step, and ends it even when an op throws.
class ExecutorStep {
 public:
  explicit ExecutorStep(Executor& executor) : executor_(executor) { executor_.begin_step(); }
  ExecutorStep(const ExecutorStep&) = delete;
  ExecutorStep& operator=(const ExecutorStep&) = delete;
  ~ExecutorStep() { executor_.end_step(); }

 private:
  Executor& executor_;
};

}  // namespace limpid
