// NVIDIA's GPUs, through CUDA's driver; nvrtc.h compiles the kernels.
#pragma once

#include <memory>

#include "executor/gpu/gpu_api.h"

namespace limpid::gpu {

// Never throws because of a driver.
DeviceList cuda_devices();

// Throws ArgumentError when CUDA has no device of that number, ResourceError when the driver
// refuses.
std::unique_ptr<Device> open_cuda_device(int index);

}  // namespace limpid::gpu
