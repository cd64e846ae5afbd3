// How fast the CPU executor's heavy ops are, each beside the limit of this machine that binds it:
// reading memory for one token, fused multiply-adds for many.
//
//   ops_bench [threads] [seconds per case]
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <vector>

#include "base/divide_up.h"
#include "cli/machine.h"
#include "executor/cpu/cpu_executor.h"
#include "tensor/quantize_row.h"

namespace limpid {
namespace {

struct Bench {
  CpuExecutor executor;
  cli::MachineLimits limits;
  double seconds_per_case;

  // Seconds of the fastest call of `body`. One thread is timed by the time that it ran, so that
  // others on the machine disturb less.
  double fastest(const std::function<void()>& body) const {
    const clockid_t clock = limits.n_threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC;
    const auto now = [clock] {
      timespec t{};
      clock_gettime(clock, &t);
      return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
    };
    double best = INFINITY;
    const double end = now() + seconds_per_case;
    for (double start = now(); start < end; start = now()) {
      body();
      best = std::min(best, now() - start);
    }
    return best;
  }

  void report_bytes(const std::string& name, double n_bytes, double seconds) const {
    const double rate = n_bytes / seconds;
    fmt::print("{:44} {:10.1f} us {:8.2f} GB/s    {:5.1f} % of read\n", name, seconds * 1e6,
               rate / 1e9, 100 * rate / limits.read_bytes_per_second);
  }
  void report_flops(const std::string& name, double n_flops, double seconds) const {
    const double rate = n_flops / seconds;
    fmt::print("{:44} {:10.1f} us {:8.1f} GFLOP/s {:5.1f} % of fma\n", name, seconds * 1e6,
               rate / 1e9, 100 * rate / limits.flops_per_second.f32);
  }
};

// A tensor of harmless values, quickly.
Tensor filled(DType dtype, int64_t rows, int64_t cols) {
  Tensor tensor(dtype, {rows, cols});
  std::vector<float> row(static_cast<size_t>(cols));
  for (size_t i = 0; i < row.size(); ++i) row[i] = 0.01F * static_cast<float>(i % 13) - 0.05F;
  const uint64_t row_bytes = tensor.view().row_bytes();
  for (int64_t r = 0; r < rows; ++r)
    quantize_row(dtype, row, {}, tensor.data() + static_cast<uint64_t>(r) * row_bytes);
  return tensor;
}

// Pages that were never written are one page of zeros; these are not.
void fill(CpuKvStorage& kv) {
  for (int64_t block = 0; block < kv.layout().n_blocks; ++block)
    std::memset(kv.k_block(0, block, 0), 0x21, kv.block_bytes());
}

void set_tokens(StepInputs& inputs, int64_t n_tokens, int64_t first_position) {
  inputs.clear();
  for (int64_t t = 0; t < n_tokens; ++t) {
    inputs.token_ids.push_back(static_cast<int32_t>(t));
    inputs.positions.push_back(static_cast<int32_t>(first_position + t));
    inputs.sequences.push_back(0);
  }
  inputs.block_table_begin = {0};
  for (int32_t b = 0; b * kKvBlock < first_position + n_tokens; ++b)
    inputs.block_table.push_back(b);
  inputs.block_table_begin.push_back(static_cast<int32_t>(inputs.block_table.size()));
}

void bench_linear(Bench& bench, DType dtype, int64_t rows, int64_t cols, int64_t n_tokens) {
  const Tensor x_table = filled(DType::kF32, n_tokens, cols);
  const Tensor w = filled(dtype, rows, cols);
  CpuExecutor& e = bench.executor;
  const Weight table = e.load_weight({"x", x_table, WeightUse::kLookup});
  const Weight weight = e.load_weight({"w", w, WeightUse::kProjection});
  e.reserve(n_tokens, 1);
  set_tokens(e.inputs(), n_tokens, 0);
  e.begin_step();
  const Activation x = e.embed(table, EmbedBy::kTokenId);
  const double seconds = bench.fastest([&] {
    Projection p[] = {{weight, {}, {}}};
    e.linear(x, p);
  });
  e.end_step();
  const std::string name = fmt::format("linear {} [{}, {}], {} token{}", dtype_info(dtype).name,
                                       rows, cols, n_tokens, n_tokens > 1 ? "s" : "");
  if (n_tokens <= 4) {
    bench.report_bytes(name, static_cast<double>(w.view().n_bytes()), seconds);
  } else {
    bench.report_flops(name, 2.0 * static_cast<double>(rows * cols * n_tokens), seconds);
  }
}

void bench_attention(Bench& bench, const AttentionShape& shape, DType dtype, int64_t depth,
                     int64_t n_tokens) {
  const Tensor q_table = filled(DType::kF32, n_tokens, shape.n_heads * shape.head_dim);
  const Tensor k_table = filled(DType::kF32, n_tokens, shape.n_kv_heads * shape.head_dim);
  CpuExecutor& e = bench.executor;
  const Weight queries = e.load_weight({"q", q_table, WeightUse::kLookup});
  const Weight keys = e.load_weight({"k", k_table, WeightUse::kLookup});
  const int64_t n_blocks = divide_up(depth + n_tokens, kKvBlock);
  // Layers in turn, so that decode finds nothing in the caches, as in a model.
  const int64_t n_layers = 16;
  const auto kv =
      e.allocate_kv({n_layers, shape.n_kv_heads, shape.head_dim, n_blocks, dtype, dtype});
  set_tokens(e.inputs(), n_tokens, depth);
  e.begin_step();
  const Activation q = e.embed(queries, EmbedBy::kTokenId);
  const Activation k = e.embed(keys, EmbedBy::kTokenId);
  fill(static_cast<CpuKvStorage&>(*kv));
  int64_t layer = 0;
  const double seconds =
      bench.fastest([&] { e.attention(q, k, k, *kv, layer++ % n_layers, shape); });
  e.end_step();
  const std::string name = fmt::format(
      "attention {} {} x {} heads of {}, {} + {}", dtype_info(dtype).name, shape.n_kv_heads,
      shape.n_heads / shape.n_kv_heads, shape.head_dim, depth, n_tokens);
  const auto width = static_cast<double>(shape.head_dim);
  if (n_tokens == 1) {
    const double bytes_per_value = dtype == DType::kF16 ? 2 : 4;
    bench.report_bytes(
        name, 2 * bytes_per_value * width * static_cast<double>(shape.n_kv_heads * (depth + 1)),
        seconds);
  } else {
    const auto n = static_cast<double>(n_tokens);
    const double pairs = n * static_cast<double>(depth) + n * (n + 1) / 2;
    bench.report_flops(name, 4 * width * pairs * static_cast<double>(shape.n_heads), seconds);
  }
}

void run_all(Bench& bench) {
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16})
    bench_linear(bench, dtype, 8192, 8192, 1);
  bench_linear(bench, DType::kF16, 4 * 8192, 2048, 1);
  bench_linear(bench, DType::kF16, 4 * 8192, 2048, 4);
  bench_linear(bench, DType::kF16, 4 * 8192, 2048, 16);
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    bench_linear(bench, dtype, 2048, 2048, 512);
  }
  bench_linear(bench, DType::kF16, 8192, 2048, 512);
  bench_linear(bench, DType::kF16, 2048, 8192, 512);
  bench_linear(bench, DType::kF16, 1536, 576, 512);
  const AttentionShape llama_1b{32, 8, 64, 0.125F};
  const AttentionShape smollm2{9, 3, 64, 0.125F};
  for (const DType dtype : {DType::kF16, DType::kF32}) {
    bench_attention(bench, llama_1b, dtype, 2048, 1);
    bench_attention(bench, smollm2, dtype, 2048, 1);
    bench_attention(bench, llama_1b, dtype, 0, 512);
    bench_attention(bench, llama_1b, dtype, 2048, 512);
    for (const int64_t n_tokens : {1, 4, 8, 12, 16, 24, 512}) {
      bench_attention(bench, smollm2, dtype, 3500, n_tokens);
    }
  }
}

}  // namespace
}  // namespace limpid

int main(int argc, char** argv) {
  const int n_threads = argc > 1 ? std::atoi(argv[1]) : 0;
  limpid::Bench bench{
      limpid::CpuExecutor({n_threads, ""}), {}, argc > 2 ? std::atof(argv[2]) : 1.0};
  bench.limits = limpid::cli::measure_limits(n_threads == 0 ? 2 : n_threads, "f32");
  fmt::print("kernels {}, {} threads; reads {:.1f} GB/s, {:.0f} GFLOP/s of fused multiply-adds\n",
             bench.executor.isa(), bench.limits.n_threads, bench.limits.read_bytes_per_second / 1e9,
             bench.limits.flops_per_second.f32 / 1e9);
  limpid::run_all(bench);
  return 0;
}
