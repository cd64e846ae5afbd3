// Tests of the GPU executor run once for each API of GPUs, on its first device. On a machine
// without a GPU that is PoCL, OpenCL on the CPU; without any device of an API they are skipped, and
// say why.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "executor/gpu/gpu_api.h"
#include "executor/gpu/gpu_executor.h"

namespace limpid::testing {

inline constexpr const char* kGpuApis[] = {"opencl", "cuda"};
inline const auto kNameOfApi = [](const auto& info) { return std::string(info.param); };

// Why no kernel can run with this API here, or "".
inline std::string gpu_problem(const std::string& api) {
  return (api == "cuda" ? gpu::cuda_devices() : gpu::opencl_devices()).problem;
}

inline std::unique_ptr<gpu::Device> open_gpu(const std::string& api) {
  return api == "cuda" ? gpu::open_cuda_device(0) : gpu::open_opencl_device(0);
}

inline std::unique_ptr<GpuExecutor> gpu_executor(const std::string& api) {
  return std::make_unique<GpuExecutor>(open_gpu(api));
}

// Of each API: TEST_P(GpuTest, …) with make_gpu() or GetParam().
class GpuTest : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (const std::string problem = gpu_problem(GetParam()); !problem.empty())
      GTEST_SKIP() << problem;
  }
  std::unique_ptr<GpuExecutor> make_gpu() const { return gpu_executor(GetParam()); }
};

// Of each executor: TEST_P(ExecutorTest, …) with make_executor(GetParam()).
inline constexpr const char* kExecutors[] = {"reference", "cpu", "opencl", "cuda"};
class ExecutorTest : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const std::string device = GetParam();
    if (device != "opencl" && device != "cuda") return;
    if (const std::string problem = gpu_problem(device); !problem.empty()) GTEST_SKIP() << problem;
  }
};

}  // namespace limpid::testing
