// Weights, activations and steps of the GPU executor; its ops have files of their own.
#include "executor/gpu/gpu_executor.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/check.h"
#include "executor/check_shapes.h"
#include "executor/gpu/gpu_kv_storage.h"
#include "executor/gpu/kernel_sources.h"
#include "executor/gpu/packed_matrix.h"
#include "executor/gpu/program_cache.h"
#include "tensor/codec.h"

namespace limpid {
namespace {

// Rows are copied through this much memory of the host, where they are put into order.
constexpr uint64_t kStagingBytes = uint64_t{16} << 20;
// Positions whose angles are copied to the device together: a copy for each would take longer than
// a short kernel.
constexpr int64_t kAnglesAtOnce = 64;
constexpr int kPackItems = 128;  // of a group, as in kernels/pack.cl.h
// Steps of up to this many tokens are launched as graphs: they are repeated, and their kernels are
// so short that starting a launch takes as long as its kernel.
constexpr int64_t kGraphTokens = 16;

}  // namespace

GpuExecutor::GpuExecutor(std::unique_ptr<gpu::Device> device, DType products)
    : device_(std::move(device)), products_(products) {
  ops_.program = gpu::cached_program(*device_, gpu::op_program());
  gpu::Program& program = *ops_.program;
#define LIMPID_SPECIAL_OP(...)
#define LIMPID_OP(result, name, parameters, arguments) ops_.name = program.kernel(#name);
#include "executor/op_list.h"
  ops_.top_k = program.kernel("top_k");
}

// ---- loading ------------------------------------------------------------------------------------

uint64_t GpuExecutor::weight_bytes(const WeightSource& source) const {
  const Shape& shape = source.tensor.shape;
  if (source.use == WeightUse::kVector) return tensor_bytes(DType::kF32, shape);
  const DType dtype = source.tensor.dtype;
  return gpu::packed_bytes(gpu::has_matrix_program(dtype) ? dtype : DType::kF32, shape.rows(),
                           shape.cols());
}

Weight GpuExecutor::load_weight(const WeightSource& source) {
  const Shape& shape = source.tensor.shape;
  const auto id = static_cast<int32_t>(weights_.size());
  if (source.use == WeightUse::kVector) {
    const std::vector<float> values = decode_vector(source);
    auto data = device_->allocate(values.size() * sizeof(float), source.name);
    device_->write(*data, 0, std::as_bytes(std::span(values)));
    weights_.push_back({DType::kF32, std::move(data)});
    return {id, 1, shape.n_elements()};
  }
  check_heads(source);
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();  // the kernels' int
  LIMPID_CHECK(UnsupportedError, shape.rows() < kMost && shape.cols() < kMost,
               "{}: {} has too many rows or columns for a GPU", source.name,
               source.tensor.to_string());
  const bool is_known = gpu::has_matrix_program(source.tensor.dtype);
  LoadedWeight loaded{is_known ? source.tensor.dtype : DType::kF32, nullptr};
  matrix_kernels(loaded.dtype);  // now, because a step compiles nothing
  loaded.data = upload_rows(source, loaded.dtype);
  loaded.is_head = is_head(source.use);
  weights_.push_back(std::move(loaded));
  widest_ = std::max(widest_, shape.cols());
  if (source.use == WeightUse::kProjection) widest_ = std::max(widest_, shape.rows());
  if (is_head(source.use)) widest_head_ = std::max(widest_head_, shape.rows());
  return {id, shape.rows(), shape.cols()};
}

// The rows in half-split order, decoded when the device has another type than the file. Those of
// plain types are written to their places; blocks of quantised types are packed by a kernel.
std::unique_ptr<gpu::Buffer> GpuExecutor::upload_rows(const WeightSource& source, DType dtype) {
  const StoredRows stored(source);
  const int64_t n_rows = source.tensor.shape.rows();
  const int64_t cols = source.tensor.shape.cols();
  const int64_t n_octets = gpu::octets_of_row(cols);
  const bool paired = source.row_order == RowOrder::kInterleavedPairs;
  const bool packs = is_quantized(dtype);
  const uint64_t of_file = tensor_bytes(source.tensor.dtype, Shape{1, cols});
  const uint64_t size = packs ? of_file : gpu::packed_bytes(dtype, 1, cols);  // of a row
  auto data = device_->allocate(gpu::packed_bytes(dtype, n_rows, cols), source.name);
  const auto rows_at_once =
      std::min(static_cast<int64_t>(std::max<uint64_t>(kStagingBytes / size, 1)), n_rows);
  std::vector<std::byte> staging(size * static_cast<uint64_t>(rows_at_once));
  const auto blocks =
      packs ? device_->allocate(staging.size(), "blocks of " + source.name) : nullptr;
  for (int64_t begin = 0; begin < n_rows; begin += rows_at_once) {
    const int64_t end = std::min(begin + rows_at_once, n_rows);
    for (int64_t row = begin; row < end; ++row) {
      const std::byte* from =
          stored.row(paired ? interleaved_row(row, source.head_dim, source.head_dim) : row);
      std::byte* to = staging.data() + static_cast<uint64_t>(row - begin) * size;
      if (dtype == source.tensor.dtype) {
        std::memcpy(to, from, of_file);
      } else {
        decode_row(source.tensor.dtype, from,
                   {reinterpret_cast<float*>(to), static_cast<size_t>(cols)});
      }
    }
    const auto bytes = std::span(staging).first(static_cast<uint64_t>(end - begin) * size);
    device_->write(packs ? *blocks : *data, packs ? 0 : static_cast<uint64_t>(begin) * size, bytes);
    if (packs)
      launch(*matrix_kernels(dtype).pack, gpu::cover((end - begin) * n_octets, kPackItems), *blocks,
             *data, begin * n_octets, (end - begin) * n_octets, n_rows * n_octets);
  }
  return data;
}

RopeTable GpuExecutor::load_rope(std::span<const double> inverse_frequencies, int64_t n_positions) {
  const auto n_rot = 2 * static_cast<int64_t>(inverse_frequencies.size());
  RopeAngles host(inverse_frequencies, n_positions);
  const uint64_t n_bytes = tensor_bytes(DType::kF32, Shape{n_positions, n_rot});
  auto device = device_->allocate(n_bytes, "rotary angles");
  rope_tables_.push_back({std::move(host), std::move(device), n_rot});
  return {static_cast<int32_t>(rope_tables_.size() - 1), n_rot};
}

// OpenCL on the CPU has no memory of its own.
std::string GpuExecutor::memory_name() const {
  const gpu::DeviceInfo& info = device_->info();
  return info.is_cpu ? "host" : fmt::format("{}:{}", info.api, info.index);
}

std::unique_ptr<KvStorage> GpuExecutor::allocate_kv(const KvLayout& layout) {
  auto storage = std::make_unique<GpuKvStorage>(device_, layout);
  attention_kernels(layout.k_dtype, layout.v_dtype, layout.head_dim);
  has_tensor_heads_ = has_tensor_heads_ || has_tensor_attention(layout.head_dim);
  if (least_head_dim_ == 0 || layout.head_dim < least_head_dim_) least_head_dim_ = layout.head_dim;
  return storage;
}

// The sum of what `reserve` allocates for activations, `reserve_parts` for attention and
// `reserve_halves` for weights.
uint64_t GpuExecutor::step_bytes(const StepSize& size) const {
  const uint64_t most = activation_bytes(size.n_tokens, size.widest);
  const uint64_t head =
      std::max(most, tensor_bytes(DType::kF32, Shape{size.n_outputs, size.widest_head}));
  return head + kMostActivations * most + most_parts_bytes(size) +
         halves_bytes(size.n_tokens, size.widest);
}

// A slot for each activation that may be alive, and one more for the logits: `allocate` takes it
// last, so it is free when they come. Slots that have become too small are given back.
void GpuExecutor::reserve(int64_t max_tokens, int64_t max_outputs) {
  settle();
  const uint64_t most = activation_bytes(max_tokens, widest_);
  const uint64_t head = std::max(most, tensor_bytes(DType::kF32, Shape{max_outputs, widest_head_}));
  const auto n_of = [&](uint64_t n_bytes) {
    return std::ranges::count_if(
        slots_, [&](const Slot& slot) { return slot.buffer && slot.buffer->n_bytes() >= n_bytes; });
  };
  std::vector<std::unique_ptr<gpu::Buffer>> more;
  if (n_of(head) == 0) more.push_back(device_->allocate(head, "logits"));
  for (auto n = n_of(most) + std::ssize(more); n < kMostActivations + 1; ++n)
    more.push_back(device_->allocate(most, "activations"));
  for (Slot& slot : slots_) {
    if (slot.is_free && slot.buffer && slot.buffer->n_bytes() < most) slot.buffer.reset();
  }
  for (auto& buffer : more) {
    const auto empty =
        std::ranges::find_if(slots_, [](const Slot& slot) { return slot.buffer == nullptr; });
    Slot& slot = empty == slots_.end() ? slots_.emplace_back() : *empty;
    slot = {std::move(buffer), true};
  }
  reserve_halves(max_tokens);  // a step of Model::read_out has rows, but no tokens in its inputs
}

// ---- programs -----------------------------------------------------------------------------------

const GpuExecutor::MatrixKernels& GpuExecutor::matrix_kernels(DType dtype) {
  const auto found = matrices_.find(dtype);
  if (found != matrices_.end()) return found->second;
  MatrixKernels kernels;
  kernels.program = gpu::cached_program(*device_, gpu::matrix_program(dtype));
  if (is_quantized(dtype)) kernels.pack = kernels.program->kernel("pack");
  kernels.embed = kernels.program->kernel("embed");
  kernels.linear_one = kernels.program->kernel("linear_one");
  kernels.linear_one_of_many = kernels.program->kernel("linear_one_of_many");
  kernels.linear_one_gated = kernels.program->kernel("linear_one_gated");
  kernels.linear_few = kernels.program->kernel("linear_few");
  kernels.linear_some = kernels.program->kernel("linear_some");
  kernels.linear_more = kernels.program->kernel("linear_more");
  kernels.linear_many = kernels.program->kernel("linear_many");
  if (products_ == DType::kF16) {
    kernels.tensor_program = gpu::cached_program(*device_, gpu::tensor_program(dtype));
    kernels.halve = kernels.tensor_program->kernel("halve");
    kernels.tensor_few = kernels.tensor_program->kernel("tensor_few");
    kernels.tensor_some = kernels.tensor_program->kernel("tensor_some");
    kernels.halve_tiles = kernels.tensor_program->kernel("halve_tiles");
    kernels.tensor_many = kernels.tensor_program->kernel("tensor_many");
  }
  return matrices_[dtype] = std::move(kernels);
}

bool GpuExecutor::has_tensor_attention(int64_t head_dim) const {
  return products_ == DType::kF16 && gpu::has_tensor_attention(head_dim);
}

const GpuExecutor::AttentionKernels& GpuExecutor::attention_kernels(DType k_dtype, DType v_dtype,
                                                                    int64_t head_dim) {
  const bool on_tensor_cores = has_tensor_attention(head_dim);
  const std::tuple key(k_dtype, v_dtype, on_tensor_cores ? head_dim : 0);
  const auto found = attentions_.find(key);
  if (found != attentions_.end()) return found->second;
  AttentionKernels kernels;
  const auto load = [&](const gpu::ProgramSource& source) -> gpu::Program& {
    kernels.programs.push_back(gpu::cached_program(*device_, source));
    return *kernels.programs.back();
  };
  if (on_tensor_cores) {
    gpu::Program& program = load(gpu::tensor_attention_program(k_dtype, v_dtype, head_dim));
    kernels.attend.push_back({program.kernel("tensor_attend_few"), 32, 16});
    kernels.attend.push_back({program.kernel("tensor_attend"), 256, 128});
    kernels.combine = program.kernel("tensor_combine");
  } else {
    for (const int rows : gpu::kAttendRows) {
      gpu::Program& program = load(gpu::attention_program(k_dtype, v_dtype, rows));
      kernels.attend.push_back({program.kernel("attend"), 128, rows});
    }
    kernels.combine = kernels.programs.front()->kernel("combine");
  }
  kernels.append = kernels.programs.front()->kernel("append");
  return attentions_[key] = std::move(kernels);
}

// ---- steps --------------------------------------------------------------------------------------

// Copies all lists of the step to the device at once, and the angles of new positions.
void GpuExecutor::begin_step() {
  settle();
  packed_inputs_.clear();
  const auto add = [&](const std::vector<int32_t>& list) {
    const auto begin = static_cast<int32_t>(packed_inputs_.size());
    packed_inputs_.insert(packed_inputs_.end(), list.begin(), list.end());
    return begin;
  };
  lists_.token_ids = add(inputs_.token_ids);
  lists_.positions = add(inputs_.positions);
  lists_.sequences = add(inputs_.sequences);
  lists_.output_rows = add(inputs_.output_rows);
  lists_.table_begin = add(inputs_.block_table_begin);
  lists_.table = add(inputs_.block_table);
  const std::span bytes = std::as_bytes(std::span(packed_inputs_));
  if (!step_ || step_->n_bytes() < bytes.size())
    make_room(step_, std::max<size_t>(2 * bytes.size(), 1024), "the inputs of a step");
  device_->write(*step_, 0, bytes);
  reserve_parts();
  reserve_halves(inputs_.n_tokens());
  const int64_t last = inputs_.positions.empty() ? -1 : std::ranges::max(inputs_.positions);
  for (Angles& angles : rope_tables_)  // `rope` refuses what lies beyond
    upload_angles(angles, std::min(last, angles.host.n_positions() - 1));
  if (inputs_.n_tokens() <= kGraphTokens) device_->begin_graph();
}

void GpuExecutor::make_room(std::unique_ptr<gpu::Buffer>& buffer, uint64_t n_bytes,
                            std::string_view purpose) {
  if (buffer && buffer->n_bytes() >= n_bytes) return;
  buffer.reset();  // first, because both together are not planned
  buffer = device_->allocate(n_bytes, purpose);
}

void GpuExecutor::upload_angles(Angles& angles, int64_t last) {
  if (last < angles.n_there) return;
  last = std::min((last / kAnglesAtOnce + 1) * kAnglesAtOnce, angles.host.n_positions()) - 1;
  angles.host.compute_to(last);
  const int64_t half = angles.n_rot / 2;
  std::vector<float> values;
  for (int64_t p = angles.n_there; p <= last; ++p) {
    values.insert(values.end(), angles.host.cosines(p), angles.host.cosines(p) + half);
    values.insert(values.end(), angles.host.sines(p), angles.host.sines(p) + half);
  }
  const int64_t offset = angles.n_there * angles.n_rot * static_cast<int64_t>(sizeof(float));
  device_->write(*angles.device, static_cast<uint64_t>(offset), std::as_bytes(std::span(values)));
  angles.n_there = last + 1;
}

// The smallest free slot that is large enough: steps of one shape get the same ones. The queue
// works in order, so a slot may be written to again as soon as its handle died.
Activation GpuExecutor::allocate(int64_t n_rows, int64_t n_cols) {
  const uint64_t n_bytes = tensor_bytes(DType::kF32, Shape{n_rows, n_cols});
  Slot* best = nullptr;
  for (Slot& slot : slots_) {
    if (!slot.is_free || !slot.buffer || slot.buffer->n_bytes() < n_bytes) continue;
    if (waiting_.has(slot.buffer.get())) continue;
    if (best == nullptr || slot.buffer->n_bytes() < best->buffer->n_bytes()) best = &slot;
  }
  if (best == nullptr) {
    best = &slots_.emplace_back(Slot{device_->allocate(n_bytes, "activations"), true});
  }
  best->is_free = false;
  return {this, static_cast<int32_t>(best - slots_.data()), n_rows, n_cols};
}

size_t GpuExecutor::n_taken() const {
  return static_cast<size_t>(
      std::ranges::count_if(slots_, [](const Slot& slot) { return !slot.is_free; }));
}

void GpuExecutor::read(const Activation& x, std::span<float> out) {
  check_elements("read", out.size(), x.rows(), x.cols());
  settle();
  device_->read(buffer(x), 0, std::as_writable_bytes(out));
}

Activation GpuExecutor::write(std::span<const float> values, int64_t rows, int64_t cols) {
  check_elements("write", values.size(), rows, cols);
  Activation y = allocate(rows, cols);
  device_->write(buffer(y), 0, std::as_bytes(values));
  return y;
}

}  // namespace limpid
