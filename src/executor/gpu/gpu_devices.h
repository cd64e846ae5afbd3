// The GPUs of this machine, of every API, and executors on them.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "executor/executor.h"
#include "executor/gpu/gpu_api.h"

namespace limpid {

// What one API finds here. Its problem, or "".
struct GpuApi {
  std::string_view name;  // "opencl", "cuda"
  gpu::DeviceList list;
};
std::vector<GpuApi> gpu_apis();

// "opencl" and "cuda" are the first device of that API, "opencl:1" the second one. Null when the
// name is of another kind. Throws ResourceError when there is none, ArgumentError for a number that
// there is not. `products` is "f32" or "f16" (OpenOptions::gpu_products).
std::unique_ptr<Executor> make_gpu_executor(std::string_view name,
                                            std::string_view products = "f32");

// Bytes a second that the device reads and writes when it copies within its memory, measured in
// about a tenth of a second. Throws as make_gpu_executor does; 0 for another kind of name.
double measure_gpu_copy(std::string_view name);

}  // namespace limpid
