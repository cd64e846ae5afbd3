// Linear layers: the rows of all projections of one input are shared out together.
//
// Q, K and V are one call, and so are gate and up. So x is quantised (or packed) once, and threads
// wake up once. The unit of work is a group of 16 rows. The groups of all projections are numbered
// consecutively, and a thread claims a range of them, which may begin in one projection and end in
// the next. So no thread is idle during the small matrices of K and V. Example: Q of Llama 3.2 1B
// has 128 groups (0 to 127), K and V have 32 each (128 to 159, 160 to 191).
//
// If there are many tokens, each thread takes some of them, with all rows. Other ops share out
// tokens too, so a thread finds most of what it reads in the caches of its own core. The cores of a
// server often have no cache in common: on a Zen 4 whose two cores have none, linear layers of 256
// tokens take 0.8 times as long as with all tokens for half of the rows. Few tokens are not
// divided, because each part reads all weights.
#include <algorithm>
#include <numeric>

#include "base/divide_up.h"
#include "executor/check_shapes.h"
#include "executor/cpu/cpu_executor.h"

namespace limpid {
namespace {

constexpr int64_t kSmallProducts = 1 << 15;  // below so many products one thread is faster than two
constexpr int64_t kTokensPerQuantizer = 16;  // a tile of quantised activations
constexpr int64_t kElementsToShare = 16384;
// Weights that a thread claims at a time: enough to be worth the claim, few enough that the threads
// end together.
constexpr int64_t kWeightsPerRange = 1 << 18;
constexpr int64_t kFewestRangesPerThread = 2;

int64_t n_groups(const Projection& p) { return divide_up(p.weight.rows, kGroupRows); }

// Tokens are divided into as many parts as there are threads, or into fewer of at least so many.
constexpr int64_t kFewestTokensOfPart = 64;
int64_t n_token_parts(int64_t n_tokens, int64_t n_threads) {
  return std::clamp<int64_t>(n_tokens / kFewestTokensOfPart, 1, n_threads);
}

int64_t first_token(int64_t part, int64_t n_parts, int64_t n_tokens, int64_t grain) {
  return part == n_parts ? n_tokens : n_tokens * part / n_parts / grain * grain;
}

// The number of all ranges is a multiple of the number of threads: with seven ranges for two
// threads, one thread would wait while the other computes the last range.
int64_t ranges_per_part(int64_t n_groups, int64_t cols, int64_t n_parts, int64_t n_threads) {
  const int64_t n_ranges = n_groups * kGroupRows * cols / kWeightsPerRange;
  const int64_t threads_per_part = divide_up(n_threads, n_parts);
  const int64_t per_thread =
      std::max(kFewestRangesPerThread, divide_up(n_ranges, threads_per_part));
  return std::min(n_groups, per_thread * threads_per_part);
}

}  // namespace

void CpuExecutor::linear(const Activation& x, std::span<Projection> projections) {
  int64_t n_all_groups = 0;
  for (Projection& p : projections) {
    check_linear("linear", x, p);
    p.y = allocate(x.rows(), p.weight.rows);
    n_all_groups += n_groups(p);
  }
  if (x.rows() == 0) return;
  const LinearInput input = linear_input(x, projections);
  const bool small = n_all_groups * kGroupRows * x.cols() * x.rows() < kSmallProducts;
  // A weight that stays in the file is packed for each part anew.
  const bool in_file = std::ranges::any_of(
      projections, [&](const Projection& p) { return is_packed_late(p.weight); });
  const int64_t n_parts = in_file ? 1 : n_token_parts(x.rows(), pool_.size());
  int64_t grain = 1;  // parts begin between the tiles of tokens of all kinds of input
  if (input.quantized.rows() > 0) grain = std::lcm(grain, kTokensPerQuantizer);
  if (input.packed.rows() > 0 || input.packed_pairs.rows() > 0)
    grain = std::lcm(grain, kFloatTokenGrain);
  const int64_t n_ranges =
      small ? 1 : ranges_per_part(n_all_groups, x.cols(), n_parts, pool_.size());
  pool_.for_ranges(n_parts * n_ranges, 1, [&](int64_t i, int64_t i_end, int thread) {
    for (int64_t next; i < i_end; i = next) {
      const int64_t part = i / n_ranges;
      next = std::min(i_end, (part + 1) * n_ranges);
      const TokenRange tokens{first_token(part, n_parts, x.rows(), grain),
                              first_token(part + 1, n_parts, x.rows(), grain)};
      int64_t begin = n_all_groups * (i - part * n_ranges) / n_ranges;
      int64_t end = n_all_groups * (next - part * n_ranges) / n_ranges;
      for (const Projection& p : projections) {
        const int64_t n = n_groups(p);
        const int64_t from = std::max<int64_t>(begin, 0);
        const int64_t to = std::min(end, n);
        if (from < to)
          linear_groups(input, p, {from, to, tokens, data(p.y), p.weight.rows, 0}, thread);
        begin -= n;
        end -= n;
      }
    }
  });
}

// Each thread has room for one part, which stays in its second-level cache: 256 tokens are 512 KiB.
void CpuExecutor::linear_in_parts(const Activation& x, const Weight& weight, const SeePart& see) {
  const Projection projection{weight, {}, {}};
  check_linear("linear", x, projection);
  if (x.rows() == 0) return see({0, weight.rows, nullptr, weight.rows});
  const LinearInput input = linear_input(x, {&projection, 1});
  const int64_t width = std::min(kPartColumns, weight.rows);
  const Activation parts = allocate(pool_.size() * x.rows(), width);
  const int64_t n_parts = divide_up(weight.rows, kPartColumns);
  pool_.for_ranges(n_parts, 1, [&](int64_t from, int64_t to, int thread) {
    float* values = data(parts) + thread * x.rows() * width;
    for (int64_t part = from; part < to; ++part) {
      const int64_t begin = part * kPartColumns;
      const int64_t end = std::min(begin + kPartColumns, weight.rows);
      linear_groups(
          input, projection,
          {begin / kGroupRows, divide_up(end, kGroupRows), {0, x.rows()}, values, width, begin},
          thread);
      see({begin, end, values, width});
    }
  });
}

bool CpuExecutor::is_quantized_weight(const Weight& weight) const {
  return is_quantized(loaded(weight).tensor.dtype);
}

bool CpuExecutor::is_packed_late(const Weight& weight) const {
  return is_quantized_weight(weight) && loaded(weight).packed.rows() == 0;
}

DType CpuExecutor::products_of(const Weight& weight) const {
  return loaded(weight).tensor.dtype == DType::kBF16 ? products_ : DType::kF32;
}

CpuExecutor::LinearInput CpuExecutor::linear_input(const Activation& x,
                                                   std::span<const Projection> projections) {
  bool is_quantized = false, has_floats = false, has_pairs = false;
  for (const Projection& p : projections) {
    const bool quantized = is_quantized_weight(p.weight);
    const bool pairs = !quantized && products_of(p.weight) == DType::kBF16;
    is_quantized |= quantized;
    has_pairs |= pairs;
    has_floats |= !quantized && !pairs;
  }
  return {.plain = x,
          .quantized = is_quantized ? quantize(x) : Activation(),
          .packed = has_floats && x.rows() > 1 ? pack(x, DType::kF32) : Activation(),
          .packed_pairs = has_pairs ? pack(x, DType::kBF16) : Activation()};
}

const float* CpuExecutor::input_of(const LinearInput& input, const Weight& weight) {
  if (is_quantized_weight(weight)) return data(input.quantized);
  if (products_of(weight) == DType::kBF16) return data(input.packed_pairs);
  return input.packed.rows() > 0 ? data(input.packed) : data(input.plain);
}

Activation CpuExecutor::quantize(const Activation& x) {
  const int64_t n_bytes = quantized_activations_bytes(x.rows(), x.cols());
  Activation quantized = allocate(1, (n_bytes + 3) / 4);
  const int64_t grain = std::max(
      kTokensPerQuantizer, kElementsToShare / x.cols() / kTokensPerQuantizer * kTokensPerQuantizer);
  auto* const out = reinterpret_cast<std::byte*>(data(quantized));
  pool_.for_ranges(x.rows(), grain, [&, from = data(x)](int64_t begin, int64_t end, int) {
    kernels_.quantize_activations(from, x.rows(), x.cols(), begin, end, out);
  });
  return quantized;
}

Activation CpuExecutor::pack(const Activation& x, DType products) {
  Activation packed = allocate(1, packed_tokens_floats(products, x.rows(), x.cols()));
  const int64_t grain =
      std::max<int64_t>(1, kElementsToShare / x.cols() / kFloatTokenGrain) * kFloatTokenGrain;
  pool_.for_ranges(x.rows(), grain,
                   [&, from = data(x), to = data(packed)](int64_t begin, int64_t end, int) {
                     kernels_.pack_tokens(products, from, x.rows(), x.cols(), begin, end, to);
                   });
  return packed;
}

void CpuExecutor::linear_groups(const LinearInput& input, const Projection& projection,
                                const GroupRange& groups, int thread) {
  const float* x = input_of(input, projection.weight);
  const int64_t cols = projection.weight.cols;
  const int64_t first = groups.tokens.begin;
  const int64_t n_tokens = groups.tokens.end - first;
  float* const y = groups.y + first * groups.y_stride;
  const LoadedWeight& weight = loaded(projection.weight);
  const float* bias =
      projection.bias ? loaded(projection.bias).vector.data() + groups.first_row : nullptr;
  if (is_quantized_weight(projection.weight)) {
    LinearTask task;
    const bool packed_late = is_packed_late(projection.weight);
    if (!packed_late) task = weight.packed.task(groups.first_row / kGroupRows);
    task.x = reinterpret_cast<const std::byte*>(x) + quantized_activations_bytes(first, cols);
    task.n_tokens = n_tokens;
    task.y = y;
    task.y_stride = groups.y_stride;
    task.bias = bias;
    task.group_begin = groups.begin - groups.first_row / kGroupRows;
    task.group_end = groups.end - groups.first_row / kGroupRows;
    task.prefetch = weight_reading_.prefetch_packed || n_tokens > 2;
    if (packed_late) return linear_in_file(weight, task, groups, thread);
    kernels_.linear_quantized(task);
    return;
  }
  FloatLinearTask task;
  task.type = weight.tensor.dtype;
  task.products = products_of(projection.weight);
  task.cols = cols;
  if (weight.row_order == RowOrder::kInterleavedPairs) task.interleaved_head_dim = weight.head_dim;
  task.x = x + packed_tokens_floats(task.products, first, cols);
  task.n_tokens = n_tokens;
  task.y = y;
  task.y_stride = groups.y_stride;
  task.bias = bias;
  task.scratch = linear_scratch(thread);
  task.scratch_floats = linear_scratch_floats_;
  task.n_streams = weight_reading_.float_streams;
  for (const StoredRows::Range& range : weight.rows.ranges()) {
    task.weight = range.data;
    task.first_row = range.begin - groups.first_row;
    task.row_begin = std::max(groups.begin * kGroupRows, range.begin) - range.begin;
    task.row_end = std::min(groups.end * kGroupRows, range.end) - range.begin;
    if (task.row_begin < task.row_end) kernels_.linear_float(task);
  }
}

void CpuExecutor::linear_in_file(const LoadedWeight& weight, LinearTask task,
                                 const GroupRange& groups, int thread) {
  const TensorView& tensor = weight.tensor;
  const auto n_bytes = static_cast<size_t>(packed_group_bytes(tensor));
  std::byte* packed = packing_scratch_.data() + static_cast<size_t>(thread) * n_bytes;
  task.dtype = tensor.dtype;
  task.weight = packed;
  task.cols = tensor.shape.cols();
  task.group_begin = 0;
  task.group_end = 1;
  float* const y = task.y;
  const float* bias = task.bias;
  for (int64_t group = groups.begin; group < groups.end; ++group) {
    pack_groups(tensor, weight.row_order, weight.head_dim, group, group + 1, packed);
    const int64_t row = group * kGroupRows;
    task.rows = std::min<int64_t>(kGroupRows, tensor.shape.rows() - row);
    task.y = y + (row - groups.first_row);
    task.bias = bias == nullptr ? nullptr : bias + (row - groups.first_row);
    kernels_.linear_quantized(task);
  }
}

}  // namespace limpid
