// The shares that `limpid bench` reports are of the limits of the instructions that do the work.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/bench.h"

namespace limpid::cli {
namespace {

nlohmann::json report_of(const BenchResult& result) {
  BenchReport report;
  report.limits = {.n_threads = 2,
                   .read_bytes_per_second = 40e9,
                   .f32_flops_per_second = 100e9,
                   .int8_flops_per_second = 400e9};
  report.results = {result};
  return nlohmann::json::parse(to_json_text(report)).at(0);
}

TEST(BenchReport, HoldsEachOperationAgainstTheLimitOfItsInstruction) {
  BenchResult result;
  result.n_prompt = 1;
  result.seconds = {2.0};
  result.n_bytes = 20e9;
  // 100e9 f32 take a second at the limit, 200e9 int8 half a second: 1.5 s of the 2 s.
  result.n_flops = {.f32 = 100e9, .int8 = 200e9};
  const nlohmann::json json = report_of(result);
  EXPECT_DOUBLE_EQ(json.at("share_of_compute"), 0.75);
  EXPECT_DOUBLE_EQ(json.at("flops_per_second"), 150e9);
  EXPECT_DOUBLE_EQ(json.at("share_of_read"), 0.25);
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

TEST(BenchReport, CountsQuantisedMatricesAsInt8) {
  // In a file of these two matrices and a vector, tied: 2 operations per weight.
  const auto view = [](DType dtype, Shape shape) { return TensorView{dtype, shape, nullptr}; };
  Checkpoint checkpoint;
  checkpoint.tensors["token_embd.weight"] = view(DType::kF16, Shape{10, 32});
  checkpoint.tensors["blk.0.attn_q.weight"] = view(DType::kQ8_0, Shape{64, 32});
  checkpoint.tensors["blk.0.attn_k.weight"] = view(DType::kBF16, Shape{16, 32});
  checkpoint.tensors["output_norm.weight"] = view(DType::kF32, Shape{32});
  checkpoint.tensors["position_embd.weight"] = view(DType::kF32, Shape{80, 32});
  DecoderSpec spec;
  spec.tied_embeddings = true;
  const TokenCost cost = cost_of(checkpoint, spec, DType::kF16, DType::kF16);
  EXPECT_EQ(cost.weight_flops.int8, 2 * 64 * 32);
  EXPECT_EQ(cost.weight_flops.f32, 2 * 16 * 32);
  EXPECT_EQ(cost.head_flops.f32, 2 * 10 * 32);
  EXPECT_EQ(cost.head_flops.int8, 0);
  EXPECT_EQ(cost.weight_bytes, 640 + 2176 + 1024 + 128);  // one row of the positions is read
}

}  // namespace
}  // namespace limpid::cli
