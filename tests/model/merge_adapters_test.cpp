#include "model/merge_adapters.h"

#include <gtest/gtest.h>

#include <cmath>

#include "layouts/lora_adapter.h"
#include "limpid/error.hpp"
#include "model/tiny_checkpoint.h"
#include "tensor/codec.h"

namespace limpid {
namespace {

constexpr const char* kName = "blk.0.attn_v.weight";

// A tiny model with an adapter of rank 1 for one matrix. Every element of B A is `element`.
std::shared_ptr<Checkpoint> adapted(DType dtype, float element) {
  testing::TinyShape shape;
  shape.dtype = dtype;
  auto checkpoint = testing::tiny_checkpoint(shape);
  const LoraNames names = lora_names(kName, 0);
  const Shape& whole = checkpoint->find(kName)->shape;
  const std::vector<float> ones(static_cast<size_t>(whole.cols()), 1.0F);
  const std::vector<float> factors(static_cast<size_t>(whole.rows()), element);
  checkpoint->add(names.a, Tensor::of(Shape{1, whole.cols()}, ones));
  checkpoint->add(names.b, Tensor::of(Shape{whole.rows(), 1}, factors));
  checkpoint->metadata.set(lora_scale_key(0), testing::metadata_value(1.0));
  return checkpoint;
}

TEST(MergeAdapters, KeepsTheTypeOfAPlainMatrix) {
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16, DType::kQ8_0}) {
    const auto checkpoint = adapted(dtype, 1);
    const bool is_quantised = dtype == DType::kQ8_0;
    const Checkpoint wide = merge_adapters(*checkpoint);
    const Checkpoint merged = merge_adapters(*checkpoint, MergedType::kOfBase);
    EXPECT_EQ(wide.find(kName)->dtype, DType::kF32);
    EXPECT_EQ(merged.find(kName)->dtype, is_quantised ? DType::kF32 : dtype);
    EXPECT_EQ(merged.find("blk.1.attn_v.weight")->dtype, dtype);
    Tensor storage, other;
    const std::vector<float> found = decode(merged.read(kName, storage));
    const std::vector<float> exact = decode(wide.read(kName, other));
    for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], exact[i], 0.01) << i;
  }
}

TEST(MergeAdapters, SaysThatMostWeightsAreF32OnlyIfTheyAre) {
  const auto checkpoint = adapted(DType::kQ8_0, 1);
  checkpoint->metadata.set("general.file_type", {int64_t{7}, "u32"});
  EXPECT_EQ(merge_adapters(*checkpoint).metadata.integer("general.file_type"), 7);
  const auto all = adapted(DType::kF32, 1);
  all->metadata.set("general.file_type", {int64_t{7}, "u32"});
  EXPECT_EQ(merge_adapters(*all).metadata.integer("general.file_type"), 0);
}

TEST(MergeAdapters, ASumThatTheTypeCannotHoldIsRefused) {
  const Checkpoint merged = merge_adapters(*adapted(DType::kF16, 1e5F), MergedType::kOfBase);
  Tensor storage;
  EXPECT_THROW(merged.read(kName, storage), FormatError);
}

TEST(MergeAdapters, ASumThatIsNotFiniteIsRefused) {
  for (const float element : {NAN, INFINITY, 3e38F}) {
    auto checkpoint = adapted(DType::kF32, element);
    checkpoint->metadata.set(lora_scale_key(0), testing::metadata_value(2.0));
    Tensor storage;
    EXPECT_THROW(merge_adapters(*checkpoint).read(kName, storage), FormatError) << element;
  }
}

}  // namespace
}  // namespace limpid
