#include "export/export_model.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "checkpoint/temp_file.h"
#include "limpid/error.hpp"
#include "model/tiny_checkpoint.h"

namespace limpid {
namespace {

// Meta's layout has no names for biases. The model is refused before a folder is created.
TEST(ExportModel, LeavesNoFolderOfAModelThatTheLayoutCannotExpress) {
  for (const char* bias : {"blk.0.attn_q.bias", "blk.0.attn_output.bias"}) {
    const auto checkpoint = testing::tiny_checkpoint();
    const auto zeros = std::make_shared<Tensor>(DType::kF32, Shape{64});
    checkpoint->owned.push_back(zeros);
    checkpoint->tensors[bias] = zeros->view();
    checkpoint->tensor_order.emplace_back(bias);
    const TempFolder folder;
    ExportOptions options;
    options.layout = Layout::kTorch;
    EXPECT_THROW(export_model(folder.path("out"), *checkpoint, options), UnsupportedError) << bias;
    EXPECT_FALSE(std::filesystem::exists(folder.path("out"))) << bias;
  }
}

}  // namespace
}  // namespace limpid
