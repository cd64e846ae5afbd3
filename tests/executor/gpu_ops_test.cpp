// The GPU executor against the reference, and against itself: batches and chunks give the same
// bits. It runs on the first device of OpenCL, which is PoCL, on the CPU, where there is no GPU.
#include <dlfcn.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <optional>

#include "executor/executors.h"
#include "executor/gpu_devices.h"
#include "executor/op_cases.h"
#include "executor/quantized_cases.h"
#include "limpid/error.hpp"

namespace limpid {
namespace {

class GpuExecutorTest : public testing::GpuTest {};
INSTANTIATE_TEST_SUITE_P(Gpu, GpuExecutorTest, ::testing::ValuesIn(testing::kGpuApis),
                         testing::kNameOfApi);

// Weights are decoded and activations stay f32, so matrices of quantised types are held to the
// bound of floats.
constexpr double kLinearTolerance = 2e-6;

double tolerance_of(const OpCase& c) {
  return c.name.starts_with("linear") ? kLinearTolerance : c.tolerance;
}

TEST_P(GpuExecutorTest, MatchTheReference) {
  const auto gpu = make_gpu();
  for (const OpCase& c : op_cases()) {
    const std::vector<float> expected = c.run(*make_reference_executor({2, ""}));
    EXPECT_LE(relative_error(c.run(*gpu), expected), tolerance_of(c)) << c.name;
  }
  EXPECT_EQ(gpu->n_taken(), 0U);
}

// ---- quantised types ----------------------------------------------------------------------------

constexpr int64_t kRows = 70;    // more than a tile of linear_many
constexpr int64_t kCols = 1536;  // more spans than lanes, and whole blocks of 256

// The first rows of the weight as `embed` gives them, and the product with `n_tokens` random ones.
struct QuantizedResult {
  std::vector<float> rows;
  std::vector<float> product;
};
QuantizedResult run_quantized(Executor& executor, DType dtype, int64_t n_tokens) {
  const Tensor w = random_quantized(dtype, kRows, kCols, 1);
  const Tensor x = Tensor::of({n_tokens, kCols}, random_floats(n_tokens * kCols, 2));
  const Weight weight = executor.load_weight({"w", w, WeightUse::kLookupAndHead});
  const Weight tokens = executor.load_weight({"x", x, WeightUse::kLookup});
  executor.reserve(n_tokens, n_tokens);
  StepInputs& inputs = executor.inputs();
  inputs.clear();
  for (int32_t t = 0; t < n_tokens; ++t) inputs.token_ids.push_back(t);
  inputs.positions = inputs.sequences = inputs.token_ids;
  executor.begin_step();
  const Activation rows = executor.embed(weight, EmbedBy::kTokenId);
  Projection projections[] = {{weight, {}, {}}};
  executor.linear(executor.embed(tokens, EmbedBy::kTokenId), projections);
  executor.end_step();
  QuantizedResult result{std::vector<float>(static_cast<size_t>(n_tokens * kCols)),
                         std::vector<float>(static_cast<size_t>(n_tokens * kRows))};
  executor.read(rows, result.rows);
  executor.read(projections[0].y, result.product);
  return result;
}

class GpuTypes : public ::testing::TestWithParam<std::tuple<const char*, DType>> {};
const auto kNameOfType = [](const auto& info) {
  return fmt::format("{}_{}", std::get<0>(info.param), dtype_info(std::get<1>(info.param)).name);
};
INSTANTIATE_TEST_SUITE_P(Gpu, GpuTypes,
                         ::testing::Combine(::testing::ValuesIn(testing::kGpuApis),
                                            ::testing::ValuesIn(kQuantizedDTypes)),
                         kNameOfType);

// One token, a few and many run different kernels, in one order of addition.
TEST_P(GpuTypes, MatchTheReferenceWithTheSameBitsInAnyBatch) {
  const auto [api, dtype] = GetParam();
  if (const std::string problem = testing::gpu_problem(api); !problem.empty())
    GTEST_SKIP() << problem;
  const auto gpu = testing::gpu_executor(api);
  const auto reference = make_reference_executor({2, ""});
  const QuantizedResult many = run_quantized(*gpu, dtype, 67);
  const QuantizedResult expected = run_quantized(*reference, dtype, 67);
  EXPECT_EQ(many.rows, expected.rows);
  EXPECT_LE(relative_error(many.product, expected.product), kLinearTolerance);
  for (const int64_t n_tokens : {1, 2, 11, 16, 17}) {
    const std::vector<float> few = run_quantized(*gpu, dtype, n_tokens).product;
    EXPECT_TRUE(std::equal(few.begin(), few.end(), many.product.begin())) << n_tokens;
  }
}

// ---- one order of addition ----------------------------------------------------------------------

TEST_P(GpuExecutorTest, LinearGivesTheSameBitsForAnyBatch) {
  const auto gpu = make_gpu();
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    for (const int64_t cols : {33, 96, 2100}) {
      const LinearCase c{dtype, 70, cols, 64, true, 0};
      const std::vector<float> one_by_one = run_linear(*gpu, c, 1);
      for (const int64_t batch : {2, 5, 16, 33, 64}) {
        EXPECT_EQ(one_by_one, run_linear(*gpu, c, batch))
            << dtype_info(dtype).name << " " << cols << " " << batch;
      }
    }
  }
}

TEST_P(GpuExecutorTest, AttentionGivesTheSameBitsForAnyChunkAndAmongOthers) {
  const auto gpu = make_gpu();
  for (const DType dtype : {DType::kF32, DType::kF16}) {
    for (const int64_t group : {1, 3, 8}) {
      const AttentionCase c{48, 2, group, dtype, {150, 70}};
      const std::vector<float> whole = run_attention(*gpu, c, 150);
      for (const int64_t chunk : {1, 7, 64, 100}) {
        EXPECT_EQ(whole, run_attention(*gpu, c, chunk))
            << dtype_info(dtype).name << " " << group << " " << chunk;
      }
      const std::vector<float> alone = run_attention(*gpu, {48, 2, group, dtype, {150}}, 40);
      EXPECT_EQ(alone, std::vector<float>(whole.begin(), whole.begin() + std::ssize(alone)));
    }
  }
}

// A few tokens of a long context share its spans out over groups; many go through them one after
// the other, several tokens in a group.
TEST_P(GpuExecutorTest, LongContextsGiveTheSameBitsHoweverTheyAreSharedOut) {
  const auto gpu = make_gpu();
  for (const int64_t group : {1, 5, 18}) {
    const AttentionCase c{32, 2, group, DType::kF16, {300, 530}};
    const std::vector<float> whole = run_attention(*gpu, c, 530);
    EXPECT_LE(relative_error(whole, run_attention(*make_reference_executor({2, ""}), c, 530)), 2e-6)
        << group;
    for (const int64_t chunk : {5, 90}) EXPECT_EQ(whole, run_attention(*gpu, c, chunk)) << group;
  }
}

// Heads whose keys do not lie in chunks of 16 bytes, an odd one, and one of more than 64 columns.
TEST_P(GpuExecutorTest, HeadsOfAnySizeMatchTheReference) {
  const auto gpu = make_gpu();
  for (const DType dtype : {DType::kF32, DType::kF16}) {
    for (const int64_t head_dim : {5, 12, 300, 512}) {
      const AttentionCase c{head_dim, 1, 3, dtype, {40, 20}};
      EXPECT_LE(relative_error(run_attention(*gpu, c, 40),
                               run_attention(*make_reference_executor({2, ""}), c, 40)),
                2e-6)
          << head_dim;
      EXPECT_EQ(run_attention(*gpu, c, 40), run_attention(*gpu, c, 3)) << head_dim;
    }
  }
}

// Keys and values that a token must not see do not touch it, even when they are not finite.
TEST_P(GpuExecutorTest, WhatIsMaskedIsNotRead) {
  const auto gpu = make_gpu();
  const Tensor ones = Tensor::of({1, 16}, std::vector<float>(16, 1.0F));
  const Tensor bad = Tensor::of({1, 16}, std::vector<float>(16, NAN));
  const Weight good_table = gpu->load_weight({"good", ones, WeightUse::kLookup});
  const Weight bad_table = gpu->load_weight({"bad", bad, WeightUse::kLookup});
  const auto kv = gpu->allocate_kv({1, 1, 16, 1, DType::kF32, DType::kF32});
  StepInputs& inputs = gpu->inputs();
  inputs.block_table = {0};
  inputs.block_table_begin = {0, 1};
  inputs.token_ids = {0};
  inputs.sequences = {0};
  const auto step = [&](int32_t position, const Weight& table) {
    inputs.positions = {position};
    gpu->begin_step();
    const Activation x = gpu->embed(table, EmbedBy::kTokenId);
    const Activation y = gpu->attention(x, x, x, *kv, 0, {1, 1, 16, 1.0F});
    gpu->end_step();
    std::vector<float> out(16);
    gpu->read(y, out);
    return out;
  };
  EXPECT_TRUE(std::isnan(step(1, bad_table)[0]));  // a later position, forgotten again
  EXPECT_EQ(step(0, good_table), std::vector<float>(16, 1.0F));
}

// ---- ops that share a launch --------------------------------------------------------------------

// One token through a block of a transformer, and a few ops more; `after` is called with each new
// result. Returns those that are alive in the end.
std::vector<float> run_block(GpuExecutor& gpu, const std::function<void(Activation&)>& after) {
  constexpr int64_t kModel = 96;
  constexpr int64_t kHidden = 160;
  constexpr int64_t kHeadDim = 16;
  std::vector<Tensor> tensors;
  tensors.reserve(8);
  const auto load = [&](DType dtype, int64_t rows, int64_t cols, WeightUse use) {
    tensors.push_back(random_tensor(dtype, rows, cols, static_cast<uint64_t>(tensors.size())));
    return gpu.load_weight({"w", tensors.back(), use});
  };
  const Weight q = load(DType::kBF16, kModel, kModel, WeightUse::kProjection);
  const Weight k = load(DType::kBF16, kModel / 2, kModel, WeightUse::kProjection);
  const Weight v = load(DType::kF16, kModel / 2, kModel, WeightUse::kProjection);
  const Weight o = load(DType::kF32, kModel, kModel, WeightUse::kProjection);
  const Weight gate = load(DType::kF16, kHidden, kModel, WeightUse::kProjection);
  const Weight up = load(DType::kF16, kHidden, kModel, WeightUse::kProjection);
  const Weight down = load(DType::kBF16, kModel, kHidden, WeightUse::kProjection);
  const Tensor factors = Tensor::of({kModel}, random_floats(kModel, 3));
  const Weight norm = gpu.load_weight({"n", factors, WeightUse::kVector});
  const RopeTable angles = gpu.load_rope(std::vector<double>(kHeadDim / 2, 0.3), 8);
  const auto kv = gpu.allocate_kv({1, 3, kHeadDim, 1, DType::kF16, DType::kF32});
  StepInputs& inputs = gpu.inputs();
  inputs.clear();
  inputs.token_ids = inputs.sequences = inputs.output_rows = inputs.block_table = {0};
  inputs.positions = {0};
  inputs.block_table_begin = {0, 1};
  gpu.begin_step();
  const auto shown = [&](Activation x) {
    after(x);
    return x;
  };
  const auto project = [&](const Activation& x, const Weight& weight) {
    Projection p[] = {{weight, {}, {}}};
    gpu.linear(x, p);
    return shown(std::move(p[0].y));
  };
  const Activation x = gpu.write(random_floats(kModel, 7), 1, kModel);
  const Activation h = [&] {
    const Activation n = shown(gpu.rms_norm(x, norm, 1e-5F));
    Projection p[] = {{q, {}, {}}, {k, {}, {}}, {v, {}, {}}};
    gpu.linear(n, p);
    for (Projection& each : p) after(each.y);
    Activation of_q = std::move(p[0].y);
    Activation of_k = std::move(p[1].y);
    of_q = shown(gpu.rope(of_q, angles, kHeadDim));
    of_k = shown(gpu.rope(of_k, angles, kHeadDim));
    const Activation heads =
        shown(gpu.attention(of_q, of_k, p[2].y, *kv, 0, {6, 3, kHeadDim, 0.25F}));
    return shown(gpu.add(x, project(heads, o)));
  }();
  const Activation m = shown(gpu.rms_norm(h, norm, 1e-5F));
  Projection p[] = {{gate, {}, {}}, {up, {}, {}}};
  gpu.linear(m, p);
  for (Projection& each : p) after(each.y);
  const Activation hidden = shown(gpu.swiglu(p[0].y, p[1].y));
  const Activation y = shown(gpu.add(h, project(hidden, down)));
  // An addition of what it waits for, and one of a norm that its product waits with.
  const Activation n = shown(gpu.rms_norm(y, norm, 1e-5F));
  const Activation twice = [&] {
    Projection again[] = {{o, {}, {}}};
    gpu.linear(n, again);
    return shown(gpu.add(again[0].y, again[0].y));
  }();
  const Activation last = shown(gpu.add(n, project(n, q)));
  const Activation turned = shown(gpu.add(last, gpu.rope(project(last, o), angles, kHeadDim)));
  const Activation all = gpu.add(turned, gpu.add(twice, y));
  gpu.end_step();
  std::vector<float> results;
  for (const Activation* each : {&m, &std::as_const(p[0].y), &std::as_const(p[1].y), &hidden, &y,
                                 &n, &twice, &last, &turned, &all}) {
    std::vector<float> out(static_cast<size_t>(each->cols()));
    gpu.read(*each, out);
    results.insert(results.end(), out.begin(), out.end());
  }
  return results;
}

// Reading a result launches it by itself, so nothing shares a launch with what comes next. The
// results have the same bits, those that other ops share a launch with included.
TEST_P(GpuExecutorTest, OpsThatShareALaunchGiveTheSameBits) {
  const auto gpu = make_gpu();
  std::vector<std::vector<float>> alone;
  const std::vector<float> expected = run_block(*gpu, [&](Activation& x) {
    alone.emplace_back(static_cast<size_t>(x.cols()));
    gpu->read(x, alone.back());
  });
  EXPECT_EQ(run_block(*gpu, [](Activation&) {}), expected);
  EXPECT_EQ(gpu->n_taken(), 0U);
  // Each run reads one result when it is new, so what waited for it is launched without it.
  for (size_t n = 0; n < alone.size(); ++n) {
    size_t i = 0;
    run_block(*gpu, [&](Activation& x) {
      if (i++ != n) return;
      std::vector<float> out(static_cast<size_t>(x.cols()));
      gpu->read(x, out);
      EXPECT_EQ(out, alone[n]) << n;
    });
  }
}

// ---- the cache ----------------------------------------------------------------------------------

TEST_P(GpuExecutorTest, TheCacheKeepsItsContentWhenItGrowsAndGivesBlocksBack) {
  const auto gpu = make_gpu();
  const auto kv = gpu->allocate_kv({2, 1, 8, 1, DType::kF16, DType::kF32});
  std::vector<std::byte> block(kv->block_bytes());
  EXPECT_EQ(block.size(), 2U * 64 * 8 * (2 + 4));
  kv->read_block(0, block);
  EXPECT_EQ(block, std::vector<std::byte>(block.size(), std::byte{0}));
  for (size_t i = 0; i < block.size(); ++i) block[i] = static_cast<std::byte>(i * 7);
  kv->write_block(0, block);
  EXPECT_EQ(kv->bytes_to_grow(3), 3 * block.size());  // beside what is there
  EXPECT_EQ(kv->bytes_to_grow(1), 0U);
  kv->grow(3);
  std::vector<std::byte> again(block.size());
  kv->read_block(0, again);
  EXPECT_EQ(again, block);
  kv->read_block(2, again);
  EXPECT_EQ(again, std::vector<std::byte>(block.size(), std::byte{0}));
  EXPECT_THROW(gpu->allocate_kv({1, 1, 8, 1, DType::kBF16, DType::kF32}), UnsupportedError);
  EXPECT_THROW(gpu->allocate_kv({1, 1, 520, 1, DType::kF32, DType::kF32}), UnsupportedError);
}

TEST_P(GpuExecutorTest, TakesActivationsOfTheHost) {
  const auto gpu = make_gpu();
  gpu->begin_step();
  const std::vector<float> values = random_floats(6, 1);
  const Activation x = gpu->scale(gpu->write(values, 2, 3), -2.0F);
  gpu->end_step();
  std::vector<float> out(6);
  gpu->read(x, out);
  for (size_t i = 0; i < out.size(); ++i) EXPECT_EQ(out[i], -2.0F * values[i]);
  EXPECT_THROW(gpu->write(values, 2, 2), ShapeError);
  EXPECT_THROW(gpu->read(x, std::span(out).first(5)), ShapeError);
}

// ---- memory of activations ----------------------------------------------------------------------

TEST_P(GpuExecutorTest, StepsTakeNoMemoryBeyondWhatWasReserved) {
  const auto gpu = make_gpu();
  const Tensor table = random_tensor(DType::kF32, 40, 64, 1);
  const Tensor w = random_tensor(DType::kF16, 96, 64, 2);
  const Weight embedding = gpu->load_weight({"e", table, WeightUse::kLookup});
  const Weight weight = gpu->load_weight({"w", w, WeightUse::kProjection});
  const auto step = [&](int32_t n_tokens) {
    StepInputs& inputs = gpu->inputs();
    inputs.clear();
    inputs.token_ids.resize(static_cast<size_t>(n_tokens));
    std::iota(inputs.token_ids.begin(), inputs.token_ids.end(), 0);
    inputs.positions = inputs.token_ids;
    inputs.sequences.assign(inputs.token_ids.size(), 0);
    std::vector<int32_t> ids;
    gpu->begin_step();
    const Activation x = gpu->embed(embedding, EmbedBy::kTokenId);
    Projection p[] = {{weight, {}, {}}, {weight, {}, {}}, {weight, {}, {}}};
    gpu->linear(x, p);
    const Activation y = gpu->add(p[0].y, p[1].y);
    gpu->end_step();
    for (const Activation* a : {&x, &std::as_const(p[0].y), &std::as_const(p[1].y), &y})
      ids.push_back(a->id());
    return ids;
  };
  gpu->reserve(4, 1);
  step(4);
  gpu->reserve(32, 1);
  const size_t n_buffers = gpu->n_buffers();
  const std::vector<int32_t> of_20 = step(20);
  step(1);
  EXPECT_EQ(step(20), of_20);
  EXPECT_EQ(gpu->n_taken(), 0U);
  EXPECT_EQ(gpu->n_buffers(), n_buffers);
}

// A step of few tokens in a long context takes what step_bytes counts for it, and no more when it
// comes again.
TEST_P(GpuExecutorTest, TheMemoryOfSharedContextsIsCounted) {
  const auto gpu = make_gpu();
  const auto kv = gpu->allocate_kv({1, 2, 32, 32, DType::kF16, DType::kF16});
  const Tensor w = random_tensor(DType::kF32, 128, 128, 1);
  gpu->load_weight({"w", w, WeightUse::kProjection});
  gpu->reserve(16, 1);
  const auto begin = [&](int32_t n_tokens, int32_t n_positions) {
    StepInputs& inputs = gpu->inputs();
    inputs.clear();
    inputs.token_ids.assign(static_cast<size_t>(n_tokens), 0);
    inputs.sequences = inputs.token_ids;
    inputs.positions = inputs.token_ids;
    std::iota(inputs.positions.begin(), inputs.positions.end(), n_positions - n_tokens);
    inputs.block_table_begin = {0, 32};
    inputs.block_table.resize(32);
    std::iota(inputs.block_table.begin(), inputs.block_table.end(), 0);
    gpu->begin_step();
    gpu->end_step();
  };
  const auto counted = [&](int64_t n_tokens, int64_t n_positions) {
    const StepSize size{
        .n_tokens = n_tokens, .n_positions = n_positions, .head_dim = 32, .widest = 128};
    StepSize without = size;
    without.head_dim = 0;
    return gpu->step_bytes(size) - gpu->step_bytes(without);
  };
  EXPECT_EQ(counted(512, 256), 0U);
  for (const int32_t n_positions : {256, 257, 1000, 2048}) {
    for (const int32_t n_tokens : {1, 16, 3}) begin(n_tokens, n_positions);
    EXPECT_EQ(gpu->parts_bytes(), counted(512, n_positions)) << n_positions;
  }
  EXPECT_EQ(gpu->parts_bytes(), 16U * 8 * (128 + 2 * 4) * sizeof(float));
  // Very long contexts are shared out as long as there are not too many parts.
  EXPECT_EQ(counted(512, 1'000'000), 2048U * (128 + 2 * 4) * sizeof(float));
}

// ---- steps that come again ----------------------------------------------------------------------

// A function of the double of CUDA's driver that the driver itself lacks; null without the double.
template <class Function>
Function* of_double(const char* name) {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  return library == nullptr ? nullptr : reinterpret_cast<Function*>(dlsym(library, name));
}

// How many graphs the double has launched; nullopt without the double.
std::optional<uint64_t> n_graph_launches() {
  auto* count = of_double<uint64_t()>("limpid_double_graph_launches");
  return count == nullptr ? std::nullopt : std::optional(count());
}

// x + x of the step's token, twice; `middle` happens between.
std::vector<float> quadruple(GpuExecutor& gpu, const Weight& table, int32_t id,
                             const std::function<void(const Activation&)>& middle = {}) {
  StepInputs& inputs = gpu.inputs();
  inputs.clear();
  inputs.token_ids = {id};
  inputs.positions = inputs.sequences = {0};
  gpu.begin_step();
  const Activation x = gpu.embed(table, EmbedBy::kTokenId);
  const Activation twice = gpu.add(x, x);
  if (middle) middle(twice);
  const Activation y = gpu.add(twice, twice);
  gpu.end_step();
  std::vector<float> out(static_cast<size_t>(table.cols));
  gpu.read(y, out);
  return out;
}

// What the driver refuses becomes an error that says where it happened and what to do, and the
// executor works on.
TEST_P(GpuExecutorTest, ErrorsOfTheDriverNameDeviceCallAndKernel) {
  auto* fail = of_double<void(const char*)>("limpid_double_fail");
  if (std::string(GetParam()) != "cuda" || fail == nullptr)
    GTEST_SKIP() << "only the double of CUDA's driver fails on request";
  const auto gpu = make_gpu();
  const Tensor rows = Tensor::of({3, 8}, random_floats(24, 1));
  const Weight table = gpu->load_weight({"e", rows, WeightUse::kLookup});
  gpu->reserve(1, 1);
  const auto step = [&] { return quadruple(*gpu, table, 1); };
  const auto error_of_step = [&](const char* call) -> std::string {
    fail(call);
    try {
      step();
    } catch (const ResourceError& error) {
      return error.what();
    }
    return "";
  };
  const auto expect_words = [](const std::string& error, const std::vector<const char*>& words) {
    for (const char* word : words) EXPECT_NE(error.find(word), std::string::npos) << error;
  };
  expect_words(error_of_step("cuLaunchKernelEx"),
               {"[cuda] double of a GPU: cuLaunchKernelEx of embed failed", "use another device"});
  const std::vector<float> expected = step();
  EXPECT_EQ(step(), expected);  // as a graph
  expect_words(error_of_step("cuGraphLaunch"), {"[cuda] double of a GPU: cuGraphLaunch failed"});
  EXPECT_EQ(step(), expected);
  expect_words(error_of_step("cuMemcpyDtoHAsync"),
               {"double of a GPU: cuMemcpyDtoHAsync failed", "use another device"});
  EXPECT_EQ(step(), expected);
  fail("cuMemAlloc");
  try {
    gpu->load_weight({"blk.0.ffn_up.weight", rows, WeightUse::kLookup});
    FAIL();
  } catch (const ResourceError& error) {
    expect_words(error.what(), {"cuMemAlloc of 96 bytes for blk.0.ffn_up.weight failed",
                                "out of memory", "use a smaller context"});
  }
  EXPECT_EQ(step(), expected);
}

TEST_P(GpuExecutorTest, StepsThatComeAgainAreLaunchedAsGraphs) {
  const auto gpu = make_gpu();
  const Tensor rows = Tensor::of({3, 8}, random_floats(24, 1));
  const Weight table = gpu->load_weight({"e", rows, WeightUse::kLookup});
  gpu->reserve(1, 1);
  const auto expected = [&](int32_t id) {
    std::vector<float> values(rows.f32().begin() + 8 * id, rows.f32().begin() + 8 * (id + 1));
    for (float& v : values) v *= 4;
    return values;
  };
  const bool is_cuda = std::string(GetParam()) == "cuda";
  const auto before = is_cuda ? n_graph_launches() : std::nullopt;
  const auto expect_graphs = [&](uint64_t n) {
    if (before) {
      EXPECT_EQ(n_graph_launches(), *before + n);
    }
  };
  for (const int32_t id : {0, 1, 2, 0}) EXPECT_EQ(quadruple(*gpu, table, id), expected(id));
  expect_graphs(3);  // the first time is without
  // A step that looks at a result in the middle is two graphs.
  std::vector<float> seen(8);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(quadruple(*gpu, table, 1, [&](const Activation& x) { gpu->read(x, seen); }),
              expected(1));
    for (size_t j = 0; j < seen.size(); ++j) EXPECT_EQ(2 * seen[j], expected(1)[j]);
  }
  expect_graphs(5);
  // Activations lie elsewhere now, so the graph of before is not used.
  gpu->reserve(100, 1);
  EXPECT_EQ(quadruple(*gpu, table, 2), expected(2));
  expect_graphs(5);
  EXPECT_EQ(quadruple(*gpu, table, 1), expected(1));
  expect_graphs(6);
}

}  // namespace
}  // namespace limpid
