// The executor for GPUs: an op checks shapes, takes memory for its result and launches a kernel.
// It knows the device only through gpu_api.h, so OpenCL and CUDA run the same code and the same
// kernels.
//
// Where a weight lies after load_weight: in a buffer of the device. The blocks of a quantised
// matrix are packed into planes (kernels/octets.cl.h), which kernels decode as they read them; a
// plain matrix lies as in the file. A vector is decoded to f32, and so is a matrix of a type that
// no kernel reads. Rows of interleaved pairs are put into half-split order while they are copied,
// so kernels know one order only.
//
// A launch costs a few microseconds, as much as reading megabytes of weights. Some ops therefore
// wait for the next op, because one launch may do both: see Waiting.
//
// The host reads device memory only in `read`, `read_best` and KvStorage::read_block.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "base/divide_up.h"
#include "executor/executor.h"
#include "executor/gpu/gpu_api.h"
#include "executor/rope_table.h"

namespace limpid {

class GpuKvStorage;

class GpuExecutor final : public Executor {
 public:
  // Compiles the ops without weights, or finds them in the cache. Throws ResourceError. `products`
  // are what `linear` and `attention` multiply: kF32, or kF16, weights and activations rounded to
  // halves, on tensor cores.
  explicit GpuExecutor(std::unique_ptr<gpu::Device> device, DType products = DType::kF32);

  std::string_view name() const override { return device_->info().api; }  // "opencl" or "cuda"

  uint64_t weight_bytes(const WeightSource& source) const override;
  uint64_t step_bytes(const StepSize& size) const override;
  uint64_t available_memory() const override { return device_->available_memory(); }
  std::string memory_name() const override;
  Weight load_weight(const WeightSource& source) override;
  RopeTable load_rope(std::span<const double> inverse_frequencies, int64_t n_positions) override;
  std::unique_ptr<KvStorage> allocate_kv(const KvLayout& layout) override;
  void reserve(int64_t max_tokens, int64_t max_outputs) override;

  StepInputs& inputs() override { return inputs_; }
  void begin_step() override;
  void end_step() override {
    device_->end_graph();
    device_->flush();
  }

  // Each op has a file of its name in gpu/, or is in pointwise.cpp, norms.cpp or embed.cpp.
#define LIMPID_OP(result, name, parameters, arguments) result name parameters override;
#include "executor/op_list.h"

  void read(const Activation& x, std::span<float> out) override;
  void read_best(const Activation& x, int64_t k, std::span<int32_t> columns,
                 std::span<float> values) override;
  int64_t most_best() const override { return 128; }
  Activation write(std::span<const float> values, int64_t rows, int64_t cols) override;

  // Launches the ops that wait (see Waiting).
  void settle();

  // For tests of the contract: buffers of activations made so far, and how many are in use.
  size_t n_buffers() const { return slots_.size(); }
  size_t n_taken() const;
  uint64_t parts_bytes() const { return parts_ ? parts_->n_bytes() : 0; }

 private:
  struct LoadedWeight {
    DType dtype;  // as it lies on the device
    std::unique_ptr<gpu::Buffer> data;
    bool is_head = false;
  };
  using KernelHandle = std::unique_ptr<gpu::Kernel>;
  // The program has a kernel for each op, of its name.
  struct OpKernels {
    std::unique_ptr<gpu::Program> program;
    KernelHandle top_k;
#define LIMPID_SPECIAL_OP(...)
#define LIMPID_OP(result, name, parameters, arguments) KernelHandle name;
#include "executor/op_list.h"
  };
  // Of one type of weights.
  struct MatrixKernels {
    std::unique_ptr<gpu::Program> program;
    KernelHandle pack;  // of quantised types
    KernelHandle embed, linear_one, linear_one_of_many, linear_one_gated, linear_few, linear_some,
        linear_more, linear_many;
    // With products of halves.
    std::unique_ptr<gpu::Program> tensor_program;
    KernelHandle halve, tensor_few, tensor_some, halve_tiles, tensor_many;
  };
  // One of them, and how much a group of it computes.
  struct LinearKernel {
    const gpu::Kernel& kernel;
    int items;  // of a group
    int64_t rows;
    int64_t tokens;
  };
  // Of one type of keys and of values, in f32 or for heads of one size on tensor cores.
  struct AttentionKernels {
    struct Attend {
      KernelHandle kernel;
      int items;     // of a group
      int64_t rows;  // outputs of a group at most
    };
    std::vector<std::unique_ptr<gpu::Program>> programs;
    KernelHandle append, combine;
    std::vector<Attend> attend;  // by rows
  };
  struct Angles {
    RopeAngles host;
    std::unique_ptr<gpu::Buffer> device;  // [n_positions, (cos [n_rot / 2], sin [n_rot / 2])]
    int64_t n_rot;
    int64_t n_there = 0;  // positions that are on the device
  };
  // Memory of an activation.
  struct Slot {
    std::unique_ptr<gpu::Buffer> buffer;
    bool is_free;
  };
  struct Norm {
    const gpu::Buffer* x;
    const gpu::Buffer* weight;
    const gpu::Buffer* y;
    int64_t n_runs;
    int32_t cols;  // of a run
    float eps;
  };
  // The matrices of one launch of `linear`, all of one type.
  struct Product {
    struct Matrix {
      const gpu::Buffer* weight;
      const gpu::Buffer* bias;
      const gpu::Buffer* y;
      int32_t rows = 0;  // 0: there is none
    };
    const MatrixKernels* kernels;
    const gpu::Buffer* x;  // an activation or its halves
    int64_t n_tokens;
    int32_t cols;
    std::array<Matrix, 3> matrices{};
    size_t n_matrices = 0;
    int64_t n_rows = 0;
    int32_t biases = 0;                       // bit i: matrix i has one
    std::optional<Norm> norm = std::nullopt;  // that makes x, in the same launch
  };
  struct Rotation {
    const gpu::Buffer* x;
    const gpu::Buffer* y;
    int32_t table;  // of rope_tables_
    int64_t n_tokens;
    int32_t cols;
    int32_t head_dim;
  };
  // Queries and keys of attention, and their rotation when the same launch does it. Without a
  // rotation the other buffers are any valid ones, which the kernels do not read.
  struct Appended {
    const gpu::Buffer* q;
    const gpu::Buffer* k;
    const gpu::Buffer* angles;
    int32_t n_rot;  // 0: nothing to rotate; -1: `append` has done all this before
    const gpu::Buffer* rotated_q;
    const gpu::Buffer* rotated_k;
  };
  // Ops that were called but not launched: a norm waits for a linear layer, a linear layer for an
  // addition or a swiglu, and rotations for attention. `settle` launches them before any other
  // launch or read, in this order. Their buffers are not given to other activations meanwhile. A
  // launch that does several ops stores the results of all of them, so every activation is valid.
  struct Waiting {
    std::optional<Norm> norm;
    std::optional<Product> product;
    std::vector<Rotation> rotations;  // at most two
    bool has(const gpu::Buffer* buffer) const;
  };
  // The step's lists of ints, one after the other in step_; where each begins.
  struct StepLists {
    int32_t token_ids, positions, sequences, output_rows, table_begin, table;
  };

  void release(int32_t id) noexcept override { slots_[static_cast<size_t>(id)].is_free = true; }
  Activation allocate(int64_t n_rows, int64_t n_cols);
  const gpu::Buffer& buffer(const Activation& x) const {
    return *slots_[static_cast<size_t>(x.id())].buffer;
  }
  const LoadedWeight& weight(const Weight& handle) const {
    return weights_[static_cast<size_t>(handle.id)];
  }
  // Replaces a buffer that is not there or too small.
  void make_room(std::unique_ptr<gpu::Buffer>& buffer, uint64_t n_bytes, std::string_view purpose);
  std::unique_ptr<gpu::Buffer> upload_rows(const WeightSource& source, DType dtype);
  void upload_angles(Angles& angles, int64_t last);
  const MatrixKernels& matrix_kernels(DType dtype);
  const AttentionKernels& attention_kernels(DType k_dtype, DType v_dtype, int64_t head_dim);
  // Whether attention to heads of a size runs on tensor cores.
  bool has_tensor_attention(int64_t head_dim) const;
  Appended take_appended(const Activation& q, const Activation& k, int64_t head_dim);
  void append(const AttentionKernels& kernels, const Activation& q, const Activation& k,
              const Activation& v, const GpuKvStorage& storage, int64_t layer,
              const AttentionShape& shape, Appended& appended);
  int64_t attention_parts(int64_t positions_of_part) const;
  uint64_t most_parts_bytes(const StepSize& size) const;
  void reserve_parts();
  uint64_t activation_bytes(int64_t n_tokens, int64_t widest) const;
  uint64_t halves_bytes(int64_t n_tokens, int64_t widest) const;
  void reserve_halves(int64_t n_tokens);
  // Whether the kernels of a step of this size can do several ops.
  bool fuses(int64_t n_tokens) const { return n_tokens == 1 && products_ == DType::kF32; }
  void launch_norm(const Norm& norm);
  // A product of one token may also make sum = addend + y.
  void launch_product(const Product& product, const gpu::Buffer* addend = nullptr,
                      const gpu::Buffer* sum = nullptr);
  void launch_tiles(const Product& product);
  // Of one token. `addend` (null: nothing is added) and `result`, which is addend + y or that of
  // swiglu, are what else it does with its results.
  void launch_one(const gpu::Kernel& kernel, int64_t n_tiles, const Product& product,
                  const gpu::Buffer* addend, const gpu::Buffer* result);
  // The product that waits, if these are its results.
  std::optional<Product> take_product(std::initializer_list<const gpu::Buffer*> results);
  void launch_gated(const Product& product, const gpu::Buffer& result);
  void launch_rotation(const Rotation& rotation);
  template <class... Arguments>
  void launch(const gpu::Kernel& kernel, const gpu::Grid& grid, const Arguments&... arguments) {
    settle();
    const gpu::Argument list[] = {arguments...};
    device_->launch(kernel, grid, list);
  }
  // Of a kernel whose parameters begin with MATRICES of kernels/octets.cl.h.
  template <class... Arguments>
  void launch_matrices(const gpu::Kernel& kernel, const gpu::Grid& grid, const Product& product,
                       const Arguments&... arguments) {
    const auto& [first, second, third] = product.matrices;
    launch(kernel, grid, *first.weight, *first.bias, *first.y, first.rows, *second.weight,
           *second.bias, *second.y, second.rows, *third.weight, *third.bias, *third.y, third.rows,
           product.biases, arguments...);
  }
  LinearKernel linear_kernel(const MatrixKernels& kernels, int64_t n_tokens, int64_t n_rows) const;
  Activation halve(const Activation& x, const MatrixKernels& kernels);
  Product product_of(const Activation& x, int64_t n_tokens, const MatrixKernels& kernels,
                     std::span<const Projection> projections) const;

  std::shared_ptr<gpu::Device> device_;
  DType products_;
  OpKernels ops_;
  std::map<DType, MatrixKernels> matrices_;
  std::map<std::tuple<DType, DType, int64_t>, AttentionKernels> attentions_;
  std::vector<LoadedWeight> weights_;
  std::vector<Angles> rope_tables_;
  std::vector<Slot> slots_;
  Waiting waiting_;
  StepInputs inputs_;
  StepLists lists_{};
  std::vector<int32_t> packed_inputs_;   // the lists, on the host
  std::unique_ptr<gpu::Buffer> step_;    // and on the device
  std::unique_ptr<gpu::Buffer> parts_;   // of attention, where groups share a context out
  int64_t least_head_dim_ = 0;           // of the KV caches; 0 without one
  bool has_tensor_heads_ = false;        // has_tensor_attention(one of them)
  std::unique_ptr<gpu::Buffer> halves_;  // tiles of weights for many tokens, with kF16
  std::unique_ptr<gpu::Buffer> best_;    // of read_best
  int64_t widest_ = 1;                   // columns of an activation, logits aside
  int64_t widest_head_ = 1;              // columns of logits
};

namespace gpu {

// As the kernels' int.
constexpr int32_t as_int(int64_t n) { return static_cast<int32_t>(n); }
// How many groups of `size` cover n elements.
constexpr int64_t groups(int64_t n, int64_t size) { return divide_up(n, size); }
// Groups of `items` items that cover n elements.
constexpr Grid cover(int64_t n, int items) { return {groups(n, items), 1, items}; }
// Groups for each of n_rows rows, which cover its n elements.
constexpr Grid cover_rows(int64_t n_rows, int64_t n, int items) {
  return {n_rows * groups(n, items), 1, items};
}

}  // namespace gpu

}  // namespace limpid
