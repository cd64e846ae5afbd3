// Devices that tests of the GPU executor run on.
#pragma once

#include <gtest/gtest.h>

#include <memory>

#include "executor/gpu/gpu_executor.h"
#include "executor/gpu/opencl_api.h"

// Skips the test, and says why, where OpenCL has no device.
#define LIMPID_NEEDS_OPENCL()                               \
  do {                                                      \
    const auto list = ::limpid::gpu::opencl_devices();      \
    if (list.devices.empty()) GTEST_SKIP() << list.problem; \
  } while (false)

namespace limpid::testing {

inline std::unique_ptr<GpuExecutor> opencl_executor() {
  return std::make_unique<GpuExecutor>(gpu::open_opencl_device(0));
}

}  // namespace limpid::testing
