#include "executor/gpu/gpu_devices.h"

#include <charconv>

#include "base/check.h"
#include "executor/gpu/cuda_api.h"
#include "executor/gpu/gpu_executor.h"
#include "executor/gpu/opencl_api.h"

namespace limpid {

std::vector<GpuApi> gpu_apis() {
  return {{"cuda", gpu::cuda_devices()}, {"opencl", gpu::opencl_devices()}};
}

std::unique_ptr<Executor> make_gpu_executor(std::string_view name) {
  const size_t colon = std::min(name.find(':'), name.size());
  const std::string_view api = name.substr(0, colon);
  if (api != "opencl" && api != "cuda") return nullptr;
  int index = 0;
  if (colon < name.size()) {
    const std::string_view number = name.substr(colon + 1);
    const auto [end, error] = std::from_chars(number.begin(), number.end(), index);
    LIMPID_CHECK(ArgumentError, error == std::errc() && end == number.end(),
                 "'{}' names no device: write {}, or {}:1 for its second device", name, api, api);
  }
  return std::make_unique<GpuExecutor>(api == "cuda" ? gpu::open_cuda_device(index)
                                                     : gpu::open_opencl_device(index));
}

}  // namespace limpid
