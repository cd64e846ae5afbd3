// The CPU executor against the reference, and against itself: instruction sets, numbers of threads,
// batches and chunks give the same bits.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "executor/cpu/cpu_executor.h"
#include "executor/executors.h"
#include "executor/gradient_ops.h"
#include "executor/op_cases.h"
#include "limpid/error.hpp"

namespace limpid {
namespace {

CpuExecutor make_cpu(std::string_view isa, int n_threads) {
  return CpuExecutor({n_threads, std::string(isa)});
}

std::vector<float> run_case(const OpCase& c, std::string_view isa, int n_threads) {
  CpuExecutor executor = make_cpu(isa, n_threads);
  return c.run(executor);
}

const std::vector<OpCase>& cases() {
  static const auto all = [] {
    std::vector<OpCase> both = op_cases();
    for (OpCase& c : gradient_cases()) both.push_back(std::move(c));
    return both;
  }();
  return all;
}

class CpuOps : public testing::TestWithParam<std::string_view> {};
INSTANTIATE_TEST_SUITE_P(Isa, CpuOps, testing::ValuesIn(available_isas()),
                         [](const auto& info) { return std::string(info.param); });

const std::vector<std::vector<float>>& reference_results() {
  static const auto results = [] {
    std::vector<std::vector<float>> all;
    for (const OpCase& c : cases()) all.push_back(c.run(*make_reference_executor({2, ""})));
    return all;
  }();
  return results;
}

TEST_P(CpuOps, MatchTheReference) {
  for (size_t i = 0; i < cases().size(); ++i) {
    const double error =
        relative_error(run_case(cases()[i], GetParam(), 1), reference_results()[i]);
    EXPECT_LE(error, cases()[i].tolerance) << cases()[i].name;
  }
}

TEST_P(CpuOps, GiveTheBitsOfTheScalarKernels) {
  if (GetParam() == "scalar") GTEST_SKIP() << "is what others are compared with";
  for (const OpCase& c : cases()) {
    EXPECT_EQ(run_case(c, GetParam(), 1), run_case(c, "scalar", 2)) << c.name;
  }
}

TEST(CpuExecutor, GivesTheSameBitsForAnyNumberOfThreads) {
  for (const OpCase& c : cases()) {
    const std::vector<float> one = run_case(c, "", 1);
    for (const int n_threads : {2, 3, 7})
      EXPECT_EQ(one, run_case(c, "", n_threads)) << c.name << n_threads;
  }
}

TEST(ReferenceExecutor, GradientsOfFunctionsAgreeWithFiniteDifferences) {
  constexpr int64_t kN = 81;
  constexpr double kStep = 1e-2;
  std::vector<float> below, at, above;
  for (int i = 0; i < kN; ++i) {
    const double x = 0.1 * i - 4.04;
    below.push_back(static_cast<float>(x - kStep));
    at.push_back(static_cast<float>(x));
    above.push_back(static_cast<float>(x + kStep));
  }
  for (const UnaryKind kind :
       {UnaryKind::kSilu, UnaryKind::kRelu, UnaryKind::kGeluTanh, UnaryKind::kGeluErf}) {
    const auto executor = make_reference_executor({1, ""});
    const Tensor values = Tensor::of({4, kN}, [&] {
      std::vector<float> all = below;
      all.insert(all.end(), above.begin(), above.end());
      all.insert(all.end(), at.begin(), at.end());
      all.resize(4 * kN, 1.0F);
      return all;
    }());
    const Weight table = load_table(*executor, values);
    const auto rows = [&](int32_t first, int32_t n) {
      executor->inputs().clear();
      for (int32_t t = 0; t < n; ++t) {
        executor->inputs().token_ids.push_back(first + t);
        executor->inputs().positions.push_back(t);
        executor->inputs().sequences.push_back(0);
      }
      return executor->embed(table, EmbedBy::kTokenId);
    };
    executor->begin_step();
    const std::vector<float> y = read_values(*executor, executor->unary(kind, rows(0, 2)));
    const Activation x = rows(2, 1);
    const Activation ones = rows(3, 1);
    const std::vector<float> dx =
        read_values(*executor, executor->gradient_ops()->unary(kind, x, ones));
    executor->end_step();
    for (size_t i = 0; i < kN; ++i) {
      const double slope = (double{y[kN + i]} - y[i]) / (double{above[i]} - below[i]);
      EXPECT_NEAR(dx[i], slope, 2e-4) << static_cast<int>(kind) << " at " << at[i];
    }
  }
}

TEST_P(CpuOps, LinearGivesTheSameBitsForAnyBatch) {
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16, DType::kQ8_0, DType::kQ4_1}) {
    const LinearCase c{dtype, 70, 96, 64, true, 0};
    CpuExecutor executor = make_cpu(GetParam(), 2);
    const std::vector<float> one_by_one = run_linear(executor, c, 1);
    for (const int64_t batch : {2, 5, 16, 33, 64}) {
      EXPECT_EQ(one_by_one, run_linear(executor, c, batch))
          << dtype_info(dtype).name << " " << batch;
    }
  }
}

// Many tokens are divided between the threads, between tiles of either kind of products.
TEST_P(CpuOps, LinearGivesTheSameBitsHoweverTokensAreDivided) {
  for (const char* products : {"f32", "bf16"}) {
    for (const DType dtype : {DType::kF32, DType::kBF16, DType::kQ8_0}) {
      const LinearCase c{dtype, 70, 96, 410, true, 0};
      const auto run = [&](int n_threads) {
        CpuExecutor executor({n_threads, std::string(GetParam()), products});
        return run_linear(executor, c, 410);
      };
      const std::vector<float> one = run(1);
      for (const int n_threads : {2, 3, 7})
        EXPECT_EQ(one, run(n_threads)) << dtype_info(dtype).name << products << n_threads;
    }
  }
}

TEST_P(CpuOps, AttentionGivesTheSameBitsForAnyChunk) {
  for (const DType dtype : {DType::kF32, DType::kF16}) {
    for (const int64_t group : {1, 3, 8}) {
      const AttentionCase c{48, 2, group, dtype, {150, 70}};
      CpuExecutor executor = make_cpu(GetParam(), 2);
      const std::vector<float> whole = run_attention(executor, c, 150);
      for (const int64_t chunk : {1, 7, 64, 100}) {
        EXPECT_EQ(whole, run_attention(executor, c, chunk))
            << dtype_info(dtype).name << " " << group << " " << chunk;
      }
    }
  }
}

TEST(CpuExecutor, AttentionGivesTheSameBitsAloneAndAmongOthers) {
  CpuExecutor executor = make_cpu("", 3);
  const AttentionCase alone{64, 3, 3, DType::kF16, {200}};
  const AttentionCase crowd{64, 3, 3, DType::kF16, {200, 90, 1}};
  std::vector<float> of_crowd = run_attention(executor, crowd, 64);
  const std::vector<float> of_one = run_attention(executor, alone, 200);
  of_crowd.resize(of_one.size());  // the tokens of the first sequence are the same rows
  EXPECT_EQ(of_one, of_crowd);
}

// A decode far into the context shares blocks out over threads, in several waves.
TEST(CpuExecutor, LongContextsGiveTheSameBitsForAnyNumberOfThreads) {
  const AttentionCase c{32, 1, 2, DType::kF16, {4500}};
  const auto run = [&](int n_threads, int64_t chunk) {
    CpuExecutor executor = make_cpu("", n_threads);
    return run_attention(executor, c, chunk);
  };
  const std::vector<float> whole = run(1, 4500);
  EXPECT_EQ(whole, run(3, 10));
  EXPECT_EQ(whole, run(2, 1499));
}

// Keys and values that a token must not see do not touch it, even when they are not finite.
TEST(CpuExecutor, WhatIsMaskedIsNotRead) {
  CpuExecutor executor = make_cpu("", 1);
  const Tensor ones = Tensor::of({1, 16}, std::vector<float>(16, 1.0F));
  const Tensor bad = Tensor::of({1, 16}, std::vector<float>(16, NAN));
  const auto load = [&](const Tensor& t) {
    return executor.load_weight({"t", t, WeightUse::kLookup});
  };
  const Weight good_table = load(ones), bad_table = load(bad);
  const auto kv = executor.allocate_kv({1, 1, 16, 1, DType::kF32, DType::kF32});
  StepInputs& inputs = executor.inputs();
  inputs.block_table = {0};
  inputs.block_table_begin = {0, 1};
  inputs.token_ids = {0};
  inputs.sequences = {0};
  const auto step = [&](int32_t position, const Weight& table) {
    inputs.positions = {position};
    executor.begin_step();
    const Activation x = executor.embed(table, EmbedBy::kTokenId);
    const Activation y = executor.attention(x, x, x, *kv, 0, {1, 1, 16, 1.0F});
    executor.end_step();
    std::vector<float> out(16);
    executor.read(y, out);
    return out;
  };
  EXPECT_TRUE(std::isnan(step(1, bad_table)[0]));  // a later position, forgotten again
  EXPECT_EQ(step(0, good_table), std::vector<float>(16, 1.0F));
}

TEST(CpuExecutor, UsesTheSameAddressesForTheSameShapeAndNoNewMemory) {
  CpuExecutor executor = make_cpu("", 2);
  const Tensor table = random_tensor(DType::kF32, 40, 64, 1);
  const Tensor w = random_tensor(DType::kF16, 96, 64, 2);
  const Tensor norm = random_tensor(DType::kF32, 1, 64, 3);
  const Weight embedding = executor.load_weight({"e", table, WeightUse::kLookup});
  const Weight weight = executor.load_weight({"w", w, WeightUse::kProjection});
  const Weight scale = executor.load_weight({"n", norm, WeightUse::kVector});
  const auto kv = executor.allocate_kv({1, 2, 32, 2, DType::kF16, DType::kF16});
  executor.reserve(32, 1);
  const int64_t n_pieces = executor.arena().n_pieces();
  const auto step = [&](int32_t n_tokens) {
    StepInputs& inputs = executor.inputs();
    inputs.clear();
    inputs.block_table = {1, 0};
    inputs.block_table_begin = {0, 2};
    for (int32_t t = 0; t < n_tokens; ++t) {
      inputs.token_ids.push_back(t);
      inputs.positions.push_back(t);
      inputs.sequences.push_back(0);
    }
    std::vector<const float*> addresses;
    executor.begin_step();
    const auto seen = [&](const Activation& x) { addresses.push_back(executor.view(x).data()); };
    Activation x = executor.embed(embedding, EmbedBy::kTokenId);
    seen(x);
    for (int layer = 0; layer < 2; ++layer) {
      Activation normed = executor.rms_norm(x, scale, 1e-5F);
      Projection p[] = {{weight, {}, {}}, {weight, {}, {}}, {weight, {}, {}}};
      executor.linear(normed, p);
      for (const Projection& projection : p) seen(projection.y);
      const Activation y =
          executor.attention(normed, executor.scale(normed, 1), normed, *kv, 0, {2, 2, 32, 1.0F});
      x = executor.add(x, y);
      seen(x);
    }
    executor.end_step();
    return addresses;
  };
  const std::vector<const float*> of_20 = step(20);
  const std::vector<const float*> of_1 = step(1);
  EXPECT_EQ(step(20), of_20);
  EXPECT_EQ(step(1), of_1);
  EXPECT_EQ(executor.arena().n_taken(), 0);
  EXPECT_EQ(executor.arena().n_pieces(), n_pieces);
}

TEST(CpuExecutor, RefusesInstructionSetsThatAreNotThere) {
  try {
    make_cpu("sse9", 1);
    FAIL();
  } catch (const ArgumentError& error) {
    EXPECT_NE(std::string(error.what()).find("scalar"), std::string::npos) << error.what();
  }
  ASSERT_EQ(setenv("LIMPID_ISA", "scalar", 1), 0);
  EXPECT_EQ(make_cpu("", 1).isa(), "scalar");
  ASSERT_EQ(unsetenv("LIMPID_ISA"), 0);
  EXPECT_EQ(make_cpu("", 1).isa(), available_isas().front());
  EXPECT_THROW(make_executor("gpu"), ArgumentError);
  EXPECT_EQ(make_executor("cpu")->name(), "cpu");
}

}  // namespace
}  // namespace limpid
