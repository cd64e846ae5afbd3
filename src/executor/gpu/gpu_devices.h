// The GPUs of this machine, of every API, and executors on them.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "executor/executor.h"
#include "executor/gpu/gpu_api.h"

namespace limpid {

// One API, and the devices that it finds on this machine. Without devices, list.problem says why.
struct GpuApi {
  std::string_view name;  // "opencl", "cuda"
  gpu::DeviceList list;
};
std::vector<GpuApi> gpu_apis();

// "opencl" and "cuda" are the first device of that API, "opencl:1" the second one. Returns null for
// a name of another kind ("cpu"). Throws ResourceError if the API has no device, ArgumentError if
// it has none of that number. `products` is "f16" (OpenOptions::products), or f32 for any other.
std::unique_ptr<Executor> make_gpu_executor(std::string_view name,
                                            std::string_view products = "f32");

// The driver's name of a device that is used for the first time: the kernels that every model needs
// are still to be compiled and kept (program_cache.h), which takes minutes with PoCL. "" for other
// devices, and for one that is not there. Throws ArgumentError for "opencl:x".
std::string device_without_kernels(std::string_view name);

// Bytes a second that the device reads and writes when it copies within its memory, measured in
// about a tenth of a second. Throws as make_gpu_executor does; 0 for another kind of name.
double measure_gpu_copy(std::string_view name);

}  // namespace limpid
