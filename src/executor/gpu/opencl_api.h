// Devices of OpenCL 1.2 and later: GPUs of all vendors, and CPUs through PoCL.
#pragma once

#include <memory>

#include "executor/gpu/gpu_api.h"

namespace limpid::gpu {

// The devices of all platforms, GPUs before CPUs. Never throws because of a driver.
DeviceList opencl_devices();

// Throws ArgumentError when OpenCL has no device of that number, ResourceError when the driver
// refuses.
std::unique_ptr<Device> open_opencl_device(int index);

}  // namespace limpid::gpu
