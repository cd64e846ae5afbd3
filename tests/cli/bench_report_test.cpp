// The shares that `limpid bench` reports are of the limits of the instructions that do the work.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/bench.h"
#include "model/decoder_from_checkpoint.h"
#include "model/tiny_checkpoint.h"

namespace limpid::cli {
namespace {

nlohmann::json report_of(const BenchResult& result, double bf16_limit = 200e9) {
  BenchReport report;
  report.n_bytes = 1;  // more than the cache of this machine has
  report.limits = {.n_threads = 2,
                   .read_bytes_per_second = 40e9,
                   .flops_per_second = {.f32 = 100e9, .bf16 = bf16_limit, .int8 = 400e9}};
  report.results = {result};
  return nlohmann::json::parse(to_json_text(report)).at(0);
}

TEST(BenchReport, HoldsEachOperationAgainstTheLimitOfItsInstruction) {
  BenchResult result;
  result.n_prompt = 1;
  result.seconds = {2.0};
  result.n_bytes = 20e9;
  // 60e9 f32 take 0.6 s at the limit, 80e9 bf16 0.4 s, and 200e9 int8 0.5 s: 1.5 s of the 2 s.
  result.n_flops = {.f32 = 60e9, .bf16 = 80e9, .int8 = 200e9};
  const nlohmann::json json = report_of(result);
  EXPECT_DOUBLE_EQ(json.at("share_of_compute"), 0.75);
  EXPECT_DOUBLE_EQ(json.at("flops_per_second"), 170e9);
  EXPECT_DOUBLE_EQ(json.at("share_of_read"), 0.25);
}

TEST(BenchReport, HasNoLimitOfBf16WhereNoneWasMeasured) {
  BenchResult result;
  result.seconds = {1.0};
  EXPECT_EQ(report_of(result, 200e9).at("limit_bf16_flops_per_second"), 200e9);
  EXPECT_TRUE(report_of(result, 100e9).at("limit_bf16_flops_per_second").is_null());
}

// Memory's limit is not that of a cache: the share of it may be above 100 %.
TEST(BenchReport, HasNoShareOfTheReadLimitForWeightsInTheCache) {
  BenchResult result;
  result.seconds = {1.0};
  result.n_bytes = 80e9;
  result.ops = {{.op = "linear", .n_calls = 1, .seconds = 1, .n_weight_bytes = 80'000'000'000}};
  BenchReport report;
  report.n_bytes = 1 << 20;
  report.limits = {.n_threads = 1, .read_bytes_per_second = 40e9, .flops_per_second = {}};
  report.results = {result};
  EXPECT_EQ(to_markdown(report).find("in cache"), std::string::npos);
  report.machine.cache_bytes = 2 << 20;
  const std::string text = to_markdown(report);
  EXPECT_NE(text.find("| 80.00 | in cache |"), std::string::npos) << text;
  EXPECT_EQ(text.find("200 %"), std::string::npos) << text;
  EXPECT_TRUE(nlohmann::json::parse(to_json_text(report)).at(0).at("share_of_read").is_null());
  EXPECT_NE(to_csv(report).find(",80000000000.0,,"), std::string::npos) << to_csv(report);
}

TEST(BenchReport, LimitsHaveUnits) {
  EXPECT_EQ(rates_text({.n_threads = 1,
                        .read_bytes_per_second = 20e9,
                        .flops_per_second = {.f32 = 80e9, .bf16 = 40e9, .int8 = 70e9}}),
            "20.0 GB/s read, 80 GFLOP/s f32, 40 GFLOP/s bf16, 70 GOP/s int8");
}

TEST(BenchReport, DoublesTheQuotesOfATextInCsv) {
  BenchResult result;
  result.seconds = {1.0};
  BenchReport report;
  report.model = R"(a "b"\c)";
  report.results = {result};
  const std::string csv = to_csv(report);
  EXPECT_NE(csv.find("\n\"a \"\"b\"\"\\c\","), std::string::npos) << csv;
}

// 2 operations per weight of a matrix.
TEST(BenchReport, CountsQuantisedMatricesAsInt8) {
  testing::TinyShape shape;
  shape.n_layers = 1;
  const auto plain = testing::tiny_checkpoint(shape);
  shape.dtype = DType::kQ8_0;
  const auto checkpoint = testing::tiny_checkpoint(shape);
  for (const char* name : {"token_embd.weight", "blk.0.attn_k.weight"})
    checkpoint->tensors[name] = plain->tensors.at(name);
  const TokenCost cost = cost_of(*checkpoint, read_spec(*checkpoint), DType::kF16, DType::kF16);
  constexpr uint64_t kQuantized = 64 * 64 + 32 * 64 + 64 * 64 + 3 * 96 * 64;  // without K
  EXPECT_EQ(cost.weight_flops.int8, 2 * kQuantized);
  EXPECT_EQ(cost.weight_flops.f32, 2 * 32 * 64);
  EXPECT_EQ(cost.head_flops.f32, 2 * 50 * 64);
  EXPECT_EQ(cost.head_flops.int8, 0);
  EXPECT_EQ(cost.head_bytes, 50U * 64 * 4);
  EXPECT_EQ(cost.weight_bytes, kQuantized / 32 * 34 + (32 * 64 + 50 * 64 + 3 * 64) * 4);
}

// One row of the table and one of the positions are read.
TEST(BenchReport, CountsNoTableThatIsOnlyLookedUp) {
  testing::TinyShape shape = testing::tiny_gpt2_shape();
  shape.n_layers = 1;
  shape.tied = shape.biases = false;
  const auto checkpoint = testing::tiny_checkpoint(shape);
  const TokenCost cost = cost_of(*checkpoint, read_spec(*checkpoint), DType::kF16, DType::kF16);
  constexpr uint64_t kMatrices = 192 * 64 + 64 * 64 + 2 * 96 * 64;
  EXPECT_EQ(cost.weight_flops.f32, 2 * kMatrices);
  EXPECT_EQ(cost.head_flops.f32, 2 * 50 * 64);
  EXPECT_EQ(cost.head_bytes, 50U * 64 * 4);
  EXPECT_EQ(cost.weight_bytes, (kMatrices + 50 * 64 + 3 * 64) * 4);
}

}  // namespace
}  // namespace limpid::cli
