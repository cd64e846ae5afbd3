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
// The host reads device memory only in `read` and KvStorage::read_block.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "executor/executor.h"
#include "executor/gpu/gpu_api.h"
#include "executor/rope_table.h"

namespace limpid {

class GpuExecutor final : public Executor {
 public:
  // What `linear` multiplies.
  enum class Products {
    kF32,  // floats
    kF16,  // weights and activations rounded to halves, on tensor cores
  };

  // Compiles the ops without weights, or finds them in the cache. Throws ResourceError.
  explicit GpuExecutor(std::unique_ptr<gpu::Device> device, Products products = Products::kF32);
  ~GpuExecutor() override;

  std::string_view name() const override { return device_->info().api; }  // "opencl" or "cuda"

  uint64_t weight_bytes(const WeightSource& source) const override;
  uint64_t step_bytes(const StepSize& size) const override;
  uint64_t available_memory() const override { return device_->available_memory(); }
  Weight load_weight(const WeightSource& source) override;
  RopeTable load_rope(std::span<const double> inverse_frequencies, int64_t n_positions,
                      double magnitude) override;
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

  // For tests of the contract: buffers of activations made so far, and how many are in use.
  size_t n_buffers() const { return slots_.size(); }
  size_t n_taken() const;
  uint64_t parts_bytes() const { return parts_ ? parts_->n_bytes() : 0; }

 private:
  struct LoadedWeight {
    std::string name;
    DType dtype;  // as it lies on the device
    std::unique_ptr<gpu::Buffer> data;
  };
  struct OpKernels {
    std::unique_ptr<gpu::Program> program;
    std::unique_ptr<gpu::Kernel> add, scale, unary, swiglu, select_rows, rms_norm, layer_norm, rope,
        top_k;
  };
  // Of one type of weights.
  struct MatrixKernels {
    std::unique_ptr<gpu::Program> program;
    std::unique_ptr<gpu::Kernel> pack;  // of quantised types
    std::unique_ptr<gpu::Kernel> embed, linear_one, linear_one_of_many, linear_few, linear_many;
    // With Products::kF16.
    std::unique_ptr<gpu::Program> tensor_program;
    std::unique_ptr<gpu::Kernel> halve, tensor_few, tensor_some, tensor_many;
  };
  // One of them, and how much a group of it computes.
  struct LinearKernel {
    const gpu::Kernel& kernel;
    int items;  // of a group
    int64_t rows;
    int64_t tokens;
    bool tokens_first = false;  // in the grid
  };
  // Of one type of keys and of values, with `attend` for each of kAttendRows.
  struct AttentionKernels {
    std::vector<std::unique_ptr<gpu::Program>> programs;
    std::unique_ptr<gpu::Kernel> append, combine;
    std::vector<std::unique_ptr<gpu::Kernel>> attend;
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
  const LoadedWeight& vector_weight(const Weight& handle, int64_t cols, std::string_view op) const;
  std::unique_ptr<gpu::Buffer> upload_rows(const WeightSource& source, DType dtype);
  void upload_angles(Angles& angles, int64_t last);
  const MatrixKernels& matrix_kernels(DType dtype);
  const AttentionKernels& attention_kernels(DType k_dtype, DType v_dtype);
  int64_t attention_parts() const;
  static uint64_t most_parts_bytes(const StepSize& size);
  void reserve_parts();
  template <class... Arguments>
  void launch(const gpu::Kernel& kernel, const gpu::Grid& grid, const Arguments&... arguments) {
    const gpu::Argument list[] = {arguments...};
    device_->launch(kernel, grid, list);
  }
  Activation look_up(const Weight& table, std::span<const int32_t> ids, int32_t list,
                     std::string_view op);
  LinearKernel linear_kernel(const MatrixKernels& kernels, int64_t n_tokens, int64_t n_rows) const;
  Activation halve(const Activation& x, const MatrixKernels& kernels);
  void multiply(const Activation& x, const MatrixKernels& kernels,
                std::span<Projection> projections);

  std::shared_ptr<gpu::Device> device_;
  Products products_;
  OpKernels ops_;
  std::map<DType, MatrixKernels> matrices_;
  std::map<std::pair<DType, DType>, AttentionKernels> attentions_;
  std::vector<LoadedWeight> weights_;
  std::vector<Angles> rope_tables_;
  std::vector<Slot> slots_;
  StepInputs inputs_;
  StepLists lists_{};
  std::vector<int32_t> packed_inputs_;  // the lists, on the host
  std::unique_ptr<gpu::Buffer> step_;   // and on the device
  std::unique_ptr<gpu::Buffer> parts_;  // of attention, where groups share a context out
  int64_t least_head_dim_ = 0;          // of the KV caches; 0 without one
  std::unique_ptr<gpu::Buffer> best_;   // of read_best
  int64_t widest_ = 1;                  // columns of an activation, results of heads aside
  int64_t widest_head_ = 1;             // and of those
};

namespace gpu {

// Groups of `items` items that cover n elements.
constexpr Grid cover(int64_t n, int items) { return {(n + items - 1) / items, 1, items}; }

}  // namespace gpu

}  // namespace limpid
