#include "quantize/tensor_stream.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "limpid/error.hpp"
#include "model/tiny_checkpoint.h"

namespace limpid {
namespace {

using testing::TinyCheckpointBuilder;
using testing::TinyShape;

std::shared_ptr<Checkpoint> tiny(DType dtype = DType::kF32, int64_t d_model = 64) {
  TinyShape shape;
  shape.dtype = dtype;
  shape.d_model = d_model;
  return TinyCheckpointBuilder(shape).build();
}

std::vector<std::byte> bytes_of(const Checkpoint& checkpoint, const PlannedTensor& tensor,
                                int n_threads = 1) {
  ThreadPool pool(n_threads);
  std::vector<std::byte> all;
  stream_tensor(checkpoint, tensor, {}, pool, [&](std::span<const std::byte> piece) {
    all.insert(all.end(), piece.begin(), piece.end());
  });
  return all;
}

const PlannedTensor& find(const TensorPlan& plan, std::string_view name) {
  for (const PlannedTensor& tensor : plan.tensors) {
    if (tensor.name == name) return tensor;
  }
  throw ArgumentError("no such tensor");
}

TEST(TensorStream, WithoutATypeEveryByteStays) {
  const auto checkpoint = tiny(DType::kF16);
  const TensorPlan plan = plan_tensors(*checkpoint, {});
  ASSERT_EQ(plan.tensors.size(), checkpoint->tensor_order.size());
  EXPECT_EQ(plan.bytes_before, plan.bytes_after);
  for (const PlannedTensor& tensor : plan.tensors) {
    const TensorView* stored = checkpoint->find(tensor.name);
    const std::vector<std::byte> bytes = bytes_of(*checkpoint, tensor);
    ASSERT_EQ(bytes.size(), stored->n_bytes());
    EXPECT_EQ(std::memcmp(bytes.data(), stored->data, bytes.size()), 0) << tensor.name;
  }
}

// Files may hold such tensors: safetensors and .pth allow sizes of 0.
TEST(TensorStream, ATensorWithoutElementsHasNoBytes) {
  const auto checkpoint = tiny();
  for (const Shape& shape : {Shape{0}, Shape{3, 0}, Shape{0, 3}}) {
    checkpoint->tensors["output_norm.weight"].shape = shape;
    const TensorPlan plan = plan_tensors(*checkpoint, {});
    EXPECT_TRUE(bytes_of(*checkpoint, find(plan, "output_norm.weight")).empty())
        << shape.to_string();
  }
}

TEST(TensorStream, BytesDoNotDependOnThreads) {
  const auto checkpoint = tiny();
  PlanOptions options;
  options.file_type = &file_type_from_name("q4_0");
  const TensorPlan plan = plan_tensors(*checkpoint, options);
  const PlannedTensor& tensor = find(plan, "blk.1.ffn_gate.weight");
  EXPECT_EQ(tensor.to, DType::kQ4_0);
  EXPECT_EQ(find(plan, "blk.1.ffn_norm.weight").to, DType::kF32);
  EXPECT_EQ(bytes_of(*checkpoint, tensor, 1), bytes_of(*checkpoint, tensor, 3));
}

TEST(TensorStream, RowsMoveBetweenPairsAndHalvesAndBack) {
  const auto checkpoint = tiny();  // llama: pairs, heads of 16
  PlanOptions options;
  options.row_order = RowOrder::kHalfSplit;
  const PlannedTensor query = find(plan_tensors(*checkpoint, options), "blk.0.attn_q.weight");
  EXPECT_EQ(query.order_before, RowOrder::kInterleavedPairs);
  EXPECT_EQ(query.order_after, RowOrder::kHalfSplit);
  const std::vector<std::byte> halves = bytes_of(*checkpoint, query);
  const TensorView& stored = *checkpoint->find("blk.0.attn_q.weight");
  const uint64_t row = stored.row_bytes();
  // Row 3 of the second head's first half is row 6 of its pairs; of its second half, row 7.
  EXPECT_EQ(std::memcmp(halves.data() + 19 * row, stored.row(22), row), 0);
  EXPECT_EQ(std::memcmp(halves.data() + 27 * row, stored.row(23), row), 0);

  Checkpoint split = *checkpoint;
  split.row_order = RowOrder::kHalfSplit;
  split.tensors["blk.0.attn_q.weight"].data = halves.data();
  const TensorPlan back = plan_tensors(split, {});
  const std::vector<std::byte> pairs = bytes_of(split, find(back, "blk.0.attn_q.weight"));
  EXPECT_EQ(std::memcmp(pairs.data(), stored.data, pairs.size()), 0);
  EXPECT_FALSE(find(back, "blk.0.attn_v.weight").moves_rows());
}

// Of a head that is turned in part, only those rows are in pairs.
TEST(TensorStream, RowsThatDoNotTurnStay) {
  const auto checkpoint = tiny();
  checkpoint->metadata.set("llama.rope.dimension_count", testing::metadata_value(int64_t{8}));
  PlanOptions options;
  options.row_order = RowOrder::kHalfSplit;
  const PlannedTensor query = find(plan_tensors(*checkpoint, options), "blk.0.attn_q.weight");
  const std::vector<std::byte> halves = bytes_of(*checkpoint, query);
  const TensorView& stored = *checkpoint->find("blk.0.attn_q.weight");
  const uint64_t row = stored.row_bytes();
  const std::vector<int64_t> order = {0, 2, 4, 6, 1, 3, 5, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  for (size_t i = 0; i < order.size(); ++i) {
    EXPECT_EQ(std::memcmp(halves.data() + (16 + i) * row, stored.row(16 + order[i]), row), 0) << i;
  }
}

TEST(TensorStream, QuantisedIsQuantisedAgainOnlyWhenAsked) {
  const auto checkpoint = tiny(DType::kQ8_0);
  PlanOptions options;
  options.file_type = &file_type_from_name("q4_0");
  EXPECT_THROW(plan_tensors(*checkpoint, options), UnsupportedError);
  options.allow_requantize = true;
  EXPECT_EQ(find(plan_tensors(*checkpoint, options), "blk.0.attn_q.weight").to, DType::kQ4_0);
  options.allow_requantize = false;
  options.file_type = &file_type_from_name("f16");  // nothing is lost but size
  EXPECT_EQ(find(plan_tensors(*checkpoint, options), "blk.0.attn_q.weight").to, DType::kF16);
}

TEST(TensorStream, ARowThatBlocksDoNotDivideGetsAnotherType) {
  const auto checkpoint = tiny();
  PlanOptions options;
  options.file_type = &file_type_from_name("q4_k_m");
  const TensorPlan plan = plan_tensors(*checkpoint, options);
  EXPECT_EQ(find(plan, "blk.0.attn_q.weight").wanted, DType::kQ4_K);
  EXPECT_EQ(find(plan, "blk.0.attn_q.weight").to, DType::kQ5_0);
}

// Scales of blocks are halves, so neither they nor f16 reach beyond 65,504.
TEST(TensorStream, AValueThatTheTypeCannotHoldIsRefusedByTheNameOfItsTensor) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto refuses = [](const char* type, float value) {
    const auto checkpoint = tiny();
    auto* values = reinterpret_cast<float*>(
        const_cast<std::byte*>(checkpoint->find("blk.0.attn_v.weight")->data));
    values[70] = value;
    PlanOptions options;
    options.file_type = &file_type_from_name(type);
    const TensorPlan plan = plan_tensors(*checkpoint, options);
    try {
      bytes_of(*checkpoint, find(plan, "blk.0.attn_v.weight"));
      return false;
    } catch (const FormatError& error) {
      EXPECT_NE(std::string(error.what()).find("blk.0.attn_v.weight"), std::string::npos);
      return true;
    }
  };
  for (const char* type : {"q8_0", "q4_0", "q4_1"}) {
    EXPECT_TRUE(refuses(type, nan)) << type;
    EXPECT_TRUE(refuses(type, -1e30F)) << type;
    EXPECT_FALSE(refuses(type, 65504)) << type;
  }
  EXPECT_TRUE(refuses("f16", 65520));
  EXPECT_FALSE(refuses("f16", 65519));
  EXPECT_FALSE(refuses("f16", nan));
  EXPECT_FALSE(refuses("bf16", -1e30F));
}

}  // namespace
}  // namespace limpid
