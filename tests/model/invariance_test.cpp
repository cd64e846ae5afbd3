// One order of addition: the logits of a token are the same bits for any number of threads, any
// chunking of the prompt, alone or among others, on every instruction set. Whole models of every
// type of weights and every family on the cpu executor, and on GPUs,
// compared with ==.
#include <gtest/gtest.h>

#include <cmath>
#include <iterator>
#include <map>

#include "executor/executors.h"
#include "executor/gpu_devices.h"
#include "executor/layered_executor.h"
#include "model/family_cases.h"
#include "model/model.h"
#include "model/run_model.h"

namespace limpid {
namespace {

using testing::FamilyCase;
using testing::run_in_chunks;

constexpr int64_t kVocabSize = 50;

std::vector<int32_t> prompt(int64_t n, int64_t stride) {
  std::vector<int32_t> tokens;
  for (int64_t i = 0; i < n; ++i)
    tokens.push_back(static_cast<int32_t>((i * stride + i / 7) % kVocabSize));
  return tokens;
}

// Loads of one case share its checkpoint.
std::unique_ptr<Model> load(const FamilyCase& c, int n_threads, std::string_view isa = "",
                            const char* products = "f32") {
  static std::map<std::string, std::shared_ptr<const Checkpoint>> checkpoints;
  auto& checkpoint = checkpoints[c.name];
  if (!checkpoint) checkpoint = testing::checkpoint_of(c);
  return Model::load(checkpoint, make_cpu_executor({n_threads, std::string(isa), products}));
}

std::vector<float> run(const FamilyCase& c, int64_t n_tokens, size_t chunk, int n_threads,
                       std::string_view isa = "") {
  return run_in_chunks(*load(c, n_threads, isa), prompt(n_tokens, 5), chunk, c.kv_dtype);
}

// Of three sequences that advance at different paces in shared steps, the one that is watched.
std::vector<float> among_others(Model& model, const FamilyCase& c, int64_t n_tokens) {
  const auto tokens = prompt(n_tokens, 5);
  const auto noise = prompt(2 * n_tokens, 11);
  const auto cache = model.make_cache(10 * n_tokens, c.kv_dtype, c.kv_dtype);
  const SequenceId watched = cache->add_sequence();
  const SequenceId others[] = {cache->add_sequence(), cache->add_sequence()};
  std::vector<float> among;
  for (size_t i = 0; i < tokens.size(); i += 5) {
    const std::vector<StepItem> items = {
        {others[0], std::span(noise).subspan(i, i % 3 + 1), StepItem::Outputs::kLast},
        {watched, std::span(tokens).subspan(i, std::min<size_t>(5, tokens.size() - i)),
         StepItem::Outputs::kAll},
        {others[1], std::span(noise).subspan(2 * i, 2), StepItem::Outputs::kNone}};
    const auto logits = model.step(*cache, items);
    among.insert(among.end(), logits.begin() + kVocabSize, logits.end());
  }
  return among;
}

// In chunks whose layers run one by one, with a step of another sequence after each layer.
std::vector<float> layer_by_layer(Model& model, const FamilyCase& c, int64_t n_tokens) {
  constexpr size_t kChunk = 33;
  const auto tokens = prompt(n_tokens, 5);
  const auto noise = prompt(n_tokens, 11);
  const auto cache = model.make_cache(10 * n_tokens, c.kv_dtype, c.kv_dtype);
  const SequenceId watched = cache->add_sequence();
  const SequenceId other = cache->add_sequence();
  std::vector<float> all;
  for (size_t i = 0; i < tokens.size(); i += kChunk) {
    const StepItem item{watched, std::span(tokens).subspan(i, std::min(kChunk, tokens.size() - i)),
                        StepItem::Outputs::kAll};
    PausedStep paused;
    while (paused.n_layers + 1 < model.spec().n_layers) {
      model.step_layers(*cache, {&item, 1}, 1, paused);
      const StepItem beside{other, std::span(noise).subspan(i, 1)};
      model.step(*cache, {&beside, 1});
    }
    const auto logits = model.step(*cache, {&item, 1}, {.paused = &paused});
    all.insert(all.end(), logits.begin(), logits.end());
  }
  return all;
}

// ---- every type and every family ----------------------------------------------------------------

std::vector<FamilyCase> all_cases() {
  std::vector<FamilyCase> cases = testing::type_cases();
  std::ranges::copy(testing::family_cases(), std::back_inserter(cases));
  return cases;
}

const auto kNameOfCase = [](const auto& info) { return info.param.name; };
constexpr int64_t kTokens = 70;  // more than one block of the KV cache

class Invariance : public ::testing::TestWithParam<FamilyCase> {};
INSTANTIATE_TEST_SUITE_P(Cpu, Invariance, ::testing::ValuesIn(all_cases()), kNameOfCase);

TEST_P(Invariance, OverThreadsChunksAndBatches) {
  const std::vector<float> bits = run(GetParam(), kTokens, kTokens, 1);
  EXPECT_TRUE(std::isfinite(bits.back()));
  EXPECT_NE(bits.front(), bits.back());
  struct Cut {
    int n_threads;
    size_t chunk;
  };
  for (const auto& [n_threads, chunk] : {Cut{2, 1}, {1, 7}, {7, 33}, {3, 64}}) {
    EXPECT_EQ(run(GetParam(), kTokens, chunk, n_threads), bits)
        << n_threads << " threads, chunks of " << chunk;
  }
  EXPECT_EQ(among_others(*load(GetParam(), 2), GetParam(), kTokens), bits);
  EXPECT_EQ(layer_by_layer(*load(GetParam(), 2), GetParam(), kTokens), bits);
}

// An option that changed nothing would not be tested by the above.
TEST(InvarianceCases, GiveDifferentLogits) {
  std::map<std::string, std::vector<float>> bits;
  for (const FamilyCase& c : all_cases()) {
    std::vector<float>& ours = bits[c.name] = run(c, kTokens, kTokens, 2);
    for (const auto& [name, others] : bits) {
      if (name == c.name) continue;
      EXPECT_EQ(ours == others, name == c.same_as) << c.name << ", " << name;
    }
  }
}

class InvarianceOverIsas : public ::testing::TestWithParam<std::string_view> {};
INSTANTIATE_TEST_SUITE_P(Cpu, InvarianceOverIsas, ::testing::ValuesIn(available_isas()),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(InvarianceOverIsas, OfEveryTypeAndFamily) {
  for (const FamilyCase& c : all_cases())
    EXPECT_EQ(run(c, kTokens, 33, 2, GetParam()), run(c, kTokens, kTokens, 1)) << c.name;
}

TEST_P(InvarianceOverIsas, OfProductsOfBf16) {
  const std::vector<FamilyCase> cases = all_cases();
  const auto c = std::ranges::find(cases, "type_bf16", &FamilyCase::name);
  ASSERT_NE(c, cases.end());
  const auto logits = [&](size_t chunk, int n_threads, std::string_view isa) {
    return run_in_chunks(*load(*c, n_threads, isa, "bf16"), prompt(kTokens, 5), chunk, c->kv_dtype);
  };
  const std::vector<float> bits = logits(kTokens, 1, "");
  EXPECT_NE(bits, run(*c, kTokens, kTokens, 1));
  for (const size_t chunk : {1, 7, 33}) EXPECT_EQ(logits(chunk, 2, GetParam()), bits) << chunk;
  EXPECT_EQ(among_others(*load(*c, 2, GetParam(), "bf16"), *c, kTokens), bits);
}

// ---- the GPU executor ---------------------------------------------------------------------------

// The largest difference of two models' logits, relative to their spread.
double difference(std::span<const float> a, std::span<const float> b) {
  double sum = 0, squares = 0, largest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    sum += b[i];
    squares += double{b[i]} * b[i];
    largest = std::max(largest, std::abs(double{a[i]} - b[i]));
  }
  const auto n = static_cast<double>(b.size());
  return largest / std::sqrt(squares / n - sum / n * (sum / n));
}

class InvarianceOnGpus : public ::testing::TestWithParam<std::tuple<const char*, FamilyCase>> {};
const auto kNameOnGpu = [](const auto& info) {
  return fmt::format("{}_{}", std::get<0>(info.param), std::get<1>(info.param).name);
};
INSTANTIATE_TEST_SUITE_P(Gpu, InvarianceOnGpus,
                         ::testing::Combine(::testing::ValuesIn(testing::kGpuApis),
                                            ::testing::ValuesIn(all_cases())),
                         kNameOnGpu);

// And close to the reference, with quantised weights too. The cache is f32 for that: where two
// sums differ in their last bit, f16 may round them to neighbours, 5e-4 apart.
TEST_P(InvarianceOnGpus, OverChunksAndBatches) {
  const auto& [api, c] = GetParam();
  if (const std::string problem = testing::gpu_problem(api); !problem.empty())
    GTEST_SKIP() << problem;
  const auto model = Model::load(testing::checkpoint_of(c), make_executor(api));
  const auto tokens = prompt(kTokens, 5);
  const std::vector<float> bits = run_in_chunks(*model, tokens, kTokens, c.kv_dtype);
  for (const size_t chunk : {1, 7, 33})
    EXPECT_EQ(run_in_chunks(*model, tokens, chunk, c.kv_dtype), bits) << "chunks of " << chunk;
  EXPECT_EQ(among_others(*model, c, kTokens), bits);
  EXPECT_EQ(layer_by_layer(*model, c, kTokens), bits);
  const auto reference = Model::load(testing::checkpoint_of(c), make_reference_executor({2, ""}));
  EXPECT_LE(difference(run_in_chunks(*model, tokens, kTokens, DType::kF32),
                       run_in_chunks(*reference, tokens, kTokens, DType::kF32)),
            1e-4);
}

// ---- two devices --------------------------------------------------------------------------------

// Two layers of every type and every family, one on each device.
std::vector<FamilyCase> cases_of_two_layers() {
  std::vector<FamilyCase> cases = all_cases();
  for (FamilyCase& c : cases) c.shape.n_layers = 2;
  return cases;
}

class InvarianceOnTwoDevices
    : public ::testing::TestWithParam<std::tuple<const char*, FamilyCase>> {};
INSTANTIATE_TEST_SUITE_P(Layers, InvarianceOnTwoDevices,
                         ::testing::Combine(::testing::Values("reference", "opencl", "cuda"),
                                            ::testing::ValuesIn(cases_of_two_layers())),
                         kNameOnGpu);

// And as close to the reference as the CPU executor, whose activations have 8 bits against
// quantised weights: what that costs a model depends on its layers, so it is measured here.
TEST_P(InvarianceOnTwoDevices, OverChunksAndBatches) {
  const auto& [first, c] = GetParam();
  if (first != std::string_view("reference")) {
    if (const std::string problem = testing::gpu_problem(first); !problem.empty())
      GTEST_SKIP() << problem;
  }
  const auto checkpoint = testing::checkpoint_of(c);
  const auto model = Model::load(
      checkpoint,
      std::make_unique<LayeredExecutor>(make_executor(first), make_cpu_executor({2, ""}), 1, 2));
  const auto tokens = prompt(kTokens, 5);
  const std::vector<float> bits = run_in_chunks(*model, tokens, kTokens, c.kv_dtype);
  for (const size_t chunk : {1, 7, 33})
    EXPECT_EQ(run_in_chunks(*model, tokens, chunk, c.kv_dtype), bits) << "chunks of " << chunk;
  EXPECT_EQ(among_others(*model, c, kTokens), bits);
  EXPECT_EQ(layer_by_layer(*model, c, kTokens), bits);

  const auto whole = [&](std::unique_ptr<Executor> executor) {
    return run_in_chunks(*Model::load(checkpoint, std::move(executor)), tokens, kTokens,
                         DType::kF32);
  };
  const std::vector<float> exact = whole(make_reference_executor({2, ""}));
  const std::vector<float> cpu = whole(make_cpu_executor({2, ""}));
  const std::vector<float> layered = run_in_chunks(*model, tokens, kTokens, DType::kF32);
  EXPECT_LE(difference(layered, exact), std::max(1e-4, 1.5 * difference(cpu, exact)));
  EXPECT_NE(layered, cpu);  // another device had a part in it
}

// ---- a long prompt: more than one chunk of 512, and nine blocks of the KV cache -----------------

class LongInvariance : public ::testing::TestWithParam<FamilyCase> {};
INSTANTIATE_TEST_SUITE_P(Cpu, LongInvariance, ::testing::ValuesIn([] {
                           FamilyCase floats{.name = "llama_f32", .kv_dtype = DType::kF32};
                           FamilyCase quantized{.name = "qwen3_q8_0"};
                           quantized.shape.architecture = "qwen3";
                           quantized.shape.qk_norm = true;
                           quantized.shape.dtype = DType::kQ8_0;
                           FamilyCase gpt2{.name = "gpt2_f16", .shape = testing::tiny_gpt2_shape()};
                           gpt2.shape.dtype = DType::kF16;
                           return std::vector{floats, quantized, gpt2};
                         }()),
                         kNameOfCase);

TEST_P(LongInvariance, OverThreadsAndChunks) {
  constexpr int64_t kLong = 530;
  const std::vector<float> bits = run(GetParam(), kLong, 512, 1);
  for (const int n_threads : {1, 2, 3, 7}) {
    for (const size_t chunk : {1U, 7U, 64U, 512U}) {
      EXPECT_EQ(run(GetParam(), kLong, chunk, n_threads), bits)
          << n_threads << " threads, chunks of " << chunk;
    }
  }
}

}  // namespace
}  // namespace limpid
