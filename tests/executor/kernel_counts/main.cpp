// Counts what the kernels of decoding move: prints a table, and fails when one moves more than 1.1
// times what it must.
//
//   kernel_counts [--all]
//
// A step of one token runs on a CountingDevice with the matrices of Llama 3.2 1B, in BF16, Q8_0 and
// the types of Q4_K_M, at depth 1 and 4,096: one layer, and 2,048 rows of the head, whose kernel
// does the same for each row. Without --all the matrices of the feed-forward network, which run the
// same kernels as those of attention, are left out.
//
//   must      bytes of the operands and the result, each once, as a file holds them
//   moved     what memory delivers and takes: of activations the different bytes that the launch
//             reads and writes; of weights and the KV cache the sectors of 32 bytes that groups
//             touch, each group's added up, because what one has read is gone for the next. The
//             groups of a launch that all run at the same time find it in the cache: the different
//             bytes
//   asked     sectors that warps ask L1 for, over the different ones that groups touch
//   products  that the launch computes, those of decoding weights included, over those of the op
//
// On tensor cores attention may move 1.15 times what it must.
//
// Before, a few ops of odd sizes are compared with the reference: this device refuses what lies
// outside a buffer or at no multiple of its size, and exchanges registers as CUDA's kernels do.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>

#include "executor/executors.h"
#include "executor/gpu/gpu_executor.h"
#include "executor/kernel_counts/counting_device.h"
#include "executor/op_cases.h"

namespace limpid::counts {
namespace {

constexpr double kMost = 1.1;
constexpr int64_t kGroupsAtOnce = 264;  // two on each unit
constexpr int64_t kModel = 2048;
constexpr int64_t kHidden = 8192;
constexpr int64_t kHeads = 32;
constexpr int64_t kKvHeads = 8;
constexpr int64_t kHeadDim = 64;
constexpr int64_t kHeadRows = 2048;  // of 128,256
constexpr int64_t kVocabulary = 128'256;
constexpr int64_t kBest = 40;
constexpr uint64_t kFloat = sizeof(float);
constexpr const char* kWeight = "weight";

struct Row {
  std::string what;
  uint64_t must;
  uint64_t n_products;
  double most = kMost;  // moved / must
};

class Counts {
 public:
  explicit Counts(bool all, DType products = DType::kF32) : all_(all) {
    auto device = std::make_unique<CountingDevice>();
    device_ = device.get();
    gpu_ = std::make_unique<GpuExecutor>(std::move(device), products);
  }

  // Prints the row of the launches since the last call, which are one op.
  void print(const Row& row) {
    gpu_->settle();
    std::string kernels;
    uint64_t moved = 0;
    uint64_t of_groups = 0;
    uint64_t asked = 0;
    uint64_t n_products = 0;
    int64_t n_groups = 0;
    for (const Launch& launch : device_->take_launches()) {
      kernels += (kernels.empty() ? "" : " + ") + launch.kernel;
      n_groups += launch.n_groups;
      n_products += launch.n_fused;
      for (const auto& [purpose, traffic] : launch.traffic) {
        const bool is_streamed = purpose == kWeight || purpose == "keys and values";
        const bool at_once = launch.n_groups <= kGroupsAtOnce;
        moved += is_streamed && !at_once ? traffic.of_groups : traffic.bytes;
        of_groups += traffic.of_groups;
        asked += traffic.asked;
      }
    }
    const bool is_bad = ratio(moved, row.must) > row.most;
    ok_ = ok_ && !is_bad;
    std::printf("| %s | %s | %lld | %llu | %s%.3f%s | %.2f | ", row.what.c_str(), kernels.c_str(),
                static_cast<long long>(n_groups), static_cast<unsigned long long>(row.must),
                is_bad ? "**" : "", ratio(moved, row.must), is_bad ? "**" : "",
                ratio(asked, of_groups));
    if (row.n_products != 0) std::printf("%.2f", ratio(n_products, row.n_products));
    std::printf(" |\n");
  }

  void linear(DType dtype, const char* name, int64_t rows, int64_t cols, int64_t n_tokens = 1) {
    const std::vector<std::byte> blocks(tensor_bytes(dtype, {rows, cols}));
    const WeightSource source{
        kWeight, {dtype, {rows, cols}, blocks.data()}, WeightUse::kProjection};
    const Weight weight = gpu_->load_weight(source);
    check_pack(source);
    begin(0);
    const Activation x = rows_of(n_tokens, cols);
    Projection projection[] = {{weight, {}, {}}};
    gpu_->linear(x, projection);
    gpu_->end_step();
    const std::string tokens = n_tokens == 1 ? "" : " of " + std::to_string(n_tokens) + " tokens";
    print({name + (" " + std::string(dtype_info(dtype).name)) + tokens,
           blocks.size() + kFloat * static_cast<uint64_t>(n_tokens * (rows + cols)),
           static_cast<uint64_t>(n_tokens * rows * cols)});
  }

  // `pack` has read every byte of the file, and written every byte that weight_bytes counts.
  void check_pack(const WeightSource& source) {
    uint64_t n_bytes = 0;  // of all launches: a large matrix is packed in pieces
    for (const Launch& launch : device_->take_launches()) {
      for (const auto& [purpose, traffic] : launch.traffic) n_bytes += traffic.bytes;
    }
    const bool is_packed = is_quantized(source.tensor.dtype);
    if (n_bytes != (is_packed ? source.tensor.n_bytes() + gpu_->weight_bytes(source) : 0))
      throw std::logic_error("pack: bytes were left out");
  }

  // Before a layer's matrices, between them and behind them.
  void others() {
    const std::vector<float> ones(kModel, 1.0F);
    const Weight norm =
        gpu_->load_weight({kWeight,
                           {DType::kF32, {kModel}, reinterpret_cast<const std::byte*>(ones.data())},
                           WeightUse::kVector});
    const std::vector<std::byte> rows(tensor_bytes(DType::kQ8_0, {4, kModel}));
    const Weight table =
        gpu_->load_weight({kWeight, {DType::kQ8_0, {4, kModel}, rows.data()}, WeightUse::kLookup});
    const std::vector<double> frequencies(kHeadDim / 2, 0.5);
    const RopeTable angles = gpu_->load_rope(frequencies, 8);
    begin(0);
    device_->take_launches();
    constexpr uint64_t kRow = kModel * kFloat;
    const Activation x = gpu_->embed(table, EmbedBy::kTokenId);
    print({"embed q8_0", rows.size() / 4 + kRow, 0});
    const Activation y = gpu_->rms_norm(x, norm, 1e-5F);
    print({"rms_norm", 3 * kRow, kModel});
    const Activation z = gpu_->rope(y, angles, kHeadDim);
    print({"rope", 2 * kRow + kHeadDim * kFloat, 0});
    const Activation sum = gpu_->add(x, z);
    print({"add", 3 * kRow, 0});
    const Activation product = gpu_->swiglu(x, z);
    print({"swiglu", 3 * kRow, 0});
    const Activation last = gpu_->select_outputs(x);
    print({"select_outputs", 2 * kRow, 0});
    const Activation logits = rows_of(1, kVocabulary);
    std::vector<int32_t> ids(kBest);
    std::vector<float> best(kBest);
    gpu_->read_best(logits, kBest, ids, best);
    print({"best 40 of the logits", kFloat * static_cast<uint64_t>(kVocabulary + 2 * kBest), 0});
    gpu_->end_step();
  }

  void attention(int32_t depth, double most = kMost) {
    const int64_t n_blocks = (depth + kKvBlock - 1) / kKvBlock;
    const auto kv = gpu_->allocate_kv({1, kKvHeads, kHeadDim, n_blocks, DType::kF16, DType::kF16});
    begin(depth - 1);
    const Activation q = rows_of(1, kHeads * kHeadDim);
    const Activation k = rows_of(1, kKvHeads * kHeadDim);
    const Activation v = rows_of(1, kKvHeads * kHeadDim);
    device_->take_launches();
    const Activation y = gpu_->attention(q, k, v, *kv, 0, {kHeads, kKvHeads, kHeadDim, 0.125F});
    gpu_->end_step();
    constexpr uint64_t kPosition = 2 * kKvHeads * kHeadDim * 2;              // of the cache, in f16
    const uint64_t of_cache = kPosition * static_cast<uint64_t>(depth + 1);  // one is written
    print({"attention, depth " + std::to_string(depth),
           of_cache + kFloat * (2 * kHeads + 2 * kKvHeads) * kHeadDim,
           static_cast<uint64_t>(2 * depth * kHeads * kHeadDim), most});
  }

  bool run() {
    std::printf(
        "| op | kernels | groups | must, bytes | moved / must | asked | products |\n"
        "| -- | -- | -- | -- | -- | -- | -- |\n");
    others();
    for (const int32_t depth : {1, 4096}) attention(depth);
    for (const DType dtype : {DType::kBF16, DType::kQ8_0, DType::kQ4_K, DType::kQ6_K}) {
      linear(dtype, "attn_k", kKvHeads * kHeadDim, kModel);
      linear(dtype, "head", kHeadRows, kModel);
      linear(dtype, "attn_k", kKvHeads * kHeadDim, kModel, 8);
      if (!all_) continue;
      linear(dtype, "ffn_gate", kHidden, kModel);
      linear(dtype, "ffn_down", kModel, kHidden);
    }
    return ok_;
  }

  // On tensor cores: attention, and `linear` with the launch that makes halves of x. A fragment has
  // 8 tokens, or 16 query heads, so the products of one are 8 times those of the op. The results of
  // each block of 64 positions are written and read once more, which stays in the GPU's cache.
  bool run_tensor() {
    for (const DType dtype : {DType::kBF16, DType::kQ8_0, DType::kQ4_K, DType::kQ6_K}) {
      for (const int64_t n_tokens : {1, 8})
        linear(dtype, "attn_q", kHeads * kHeadDim, kModel, n_tokens);
      if (all_) linear(dtype, "ffn_gate", kHidden, kModel);
    }
    for (const int32_t depth : {1, 4096}) attention(depth, 1.15);
    return ok_;
  }

 private:
  static double ratio(uint64_t a, uint64_t b) {
    return static_cast<double>(a) / static_cast<double>(b);
  }
  // A step of one token at a position, whose cache lies in order.
  void begin(int32_t position) {
    StepInputs& inputs = gpu_->inputs();
    inputs.clear();
    inputs.token_ids = {0};
    inputs.positions = {position};
    inputs.sequences = {0};
    inputs.output_rows = {0};
    inputs.block_table_begin = {0, position / static_cast<int32_t>(kKvBlock) + 1};
    for (int32_t i = 0; i < inputs.block_table_begin[1]; ++i) inputs.block_table.push_back(i);
    gpu_->begin_step();
  }
  Activation rows_of(int64_t n, int64_t cols) {
    return gpu_->write(std::vector<float>(static_cast<size_t>(n * cols), 0.5F), n, cols);
  }

  bool all_;
  bool ok_ = true;
  CountingDevice* device_;
  std::unique_ptr<GpuExecutor> gpu_;
};

// Operands are rounded to halves; the same bits for one token, a few, some and many.
void compare_tensor(Executor& reference) {
  constexpr double kTolerance = 1.5e-3;
  GpuExecutor gpu(std::make_unique<CountingDevice>(), DType::kF16);
  const LinearCase c{DType::kBF16, 37, 1100, 70, true, 0};
  const std::vector<float> many = run_linear(gpu, c, 70);
  if (!(relative_error(many, run_linear(reference, c, 70)) <= kTolerance))
    throw std::logic_error("linear of halves differs from the reference");
  for (const int64_t batch : {1, 8, 60}) {
    if (run_linear(gpu, c, batch) != many)
      throw std::logic_error("linear of halves depends on the batch");
  }
  const AttentionCase a{64, 1, 5, DType::kF16, {90, 18}};
  const std::vector<float> whole = run_attention(gpu, a, 90);
  if (!(relative_error(whole, run_attention(reference, a, 90)) <= kTolerance))
    throw std::logic_error("attention of halves differs from the reference");
  if (run_attention(gpu, a, 8) != whole)
    throw std::logic_error("attention of halves depends on the chunk");
}

// One token, a few and many; groups that share a context out, and groups of several tokens.
void compare_with_reference() {
  constexpr double kTolerance = 2e-6;
  GpuExecutor gpu(std::make_unique<CountingDevice>());
  const auto reference = make_reference_executor({2, ""});
  const auto compare = [&](const std::string& what, const std::vector<float>& actual,
                           const std::vector<float>& expected) {
    if (!(relative_error(actual, expected) <= kTolerance))
      throw std::logic_error(what + " differs from the reference");
  };
  for (const int64_t cols : {33, 96, 300}) {
    const LinearCase c{DType::kBF16, 37, cols, 40, true, 0};
    const std::vector<float> expected = run_linear(*reference, c, 40);
    for (const int64_t batch : {1, 11, 40}) compare("linear", run_linear(gpu, c, batch), expected);
  }
  compare_tensor(*reference);
  const std::pair<AttentionCase, int64_t> cases[] = {
      {{12, 1, 3, DType::kF16, {260}}, 16},
      {{48, 1, 8, DType::kF16, {30, 5}}, 30},
      {{64, 1, 18, DType::kF16, {6}}, 3},
  };
  for (const auto& [c, chunk] : cases)
    compare("attention", run_attention(gpu, c, chunk), run_attention(*reference, c, chunk));
}

}  // namespace
}  // namespace limpid::counts

int main(int argc, char** argv) {
  try {
    // No files of programs that a driver compiled.
    const auto folder = std::filesystem::temp_directory_path() / "limpid_kernel_counts";
    setenv("XDG_CACHE_HOME", folder.c_str(), 1);
    limpid::counts::compare_with_reference();
    const bool all = argc > 1 && std::strcmp(argv[1], "--all") == 0;
    bool ok = limpid::counts::Counts(all).run();
    ok = limpid::counts::Counts(all, limpid::DType::kF16).run_tensor() && ok;
    std::filesystem::remove_all(folder);
    return ok ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}
