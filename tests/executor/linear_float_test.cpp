// One token may read a matrix of floats in several ways (isa.h: weight_reading). All give the same
// bits, on every instruction set, whichever of them this CPU prefers.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "executor/cpu/cpu_executor.h"
#include "executor/executors.h"
#include "executor/op_cases.h"

namespace limpid {
namespace {

class LinearFloat : public testing::TestWithParam<std::string_view> {};
INSTANTIATE_TEST_SUITE_P(Isa, LinearFloat, testing::ValuesIn(available_isas()),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(LinearFloat, GivesTheSameBitsHoweverWeightsAreRead) {
  const Kernels& kernels = *choose_isa(GetParam()).kernels;
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    for (const int64_t cols : {1, 15, 16, 100, 2060}) {
      constexpr int64_t kRows = 22;
      const Tensor weight = random_tensor(dtype, kRows, cols, 1);
      const std::vector<float> x = random_values(cols, 2), bias = random_values(kRows, 3);
      std::vector<float> scratch(kLinearScratch);
      const auto read = [&](int n_streams) {
        std::vector<float> y(kRows);
        FloatLinearTask task;
        task.type = float_type(dtype);
        task.weight = weight.view().data;
        task.cols = cols;
        task.interleaved_head_dim = 2;
        task.x = x.data();
        task.n_tokens = 1;
        task.y = y.data();
        task.y_stride = kRows;
        task.bias = bias.data();
        task.scratch = scratch.data();
        task.n_streams = n_streams;
        for (const int64_t begin : {0, 9}) {  // two ranges of odd lengths
          task.row_begin = begin;
          task.row_end = begin == 0 ? 9 : kRows;
          kernels.linear_float(task);
        }
        return y;
      };
      const std::vector<float> prefetched = read(0);
      for (const int n_streams : {2, 4}) {
        EXPECT_EQ(read(n_streams), prefetched)
            << dtype_info(dtype).name << ", " << cols << " columns, " << n_streams << " streams";
      }
    }
  }
}

}  // namespace
}  // namespace limpid
