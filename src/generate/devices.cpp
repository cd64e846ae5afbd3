#include "generate/devices.h"

#include <utility>

#include "base/check.h"
#include "executor/gpu/gpu_devices.h"
#include "executor/layered_executor.h"

namespace limpid {
namespace {

// "cuda" or "opencl": the first that has a GPU. OpenCL on the CPU does not count.
std::string first_gpu(int64_t n_layers) {
  std::string problems;
  for (const auto& [api, list] : gpu_apis()) {
    const bool has_gpu = !list.devices.empty() && !list.devices.front().is_cpu;
    if (has_gpu && list.problem.empty()) return std::string(api);
    problems += fmt::format("{}{}: {}", problems.empty() ? "" : "; ", api,
                            list.problem.empty() ? "only a CPU" : list.problem);
  }
  throw ResourceError(fmt::format(
      "cannot put {} on a GPU, because none was found ({}): use 0 layers "
      "(OpenOptions::gpu_layers), or name a device (OpenOptions::device)",
      n_layers == INT64_MAX ? "all layers"
                            : fmt::format("{} layer{}", n_layers, n_layers == 1 ? "" : "s"),
      problems));
}

// Products of `type` by one of the two devices, of which the second may be "".
void check_products(std::string_view type, std::string_view first, std::string_view second) {
  LIMPID_CHECK(ArgumentError, type == "f32" || type == "bf16" || type == "f16",
               "[engine] unknown products '{}': use f32, bf16 or f16 (OpenOptions::products)",
               type);
  const auto offers = [type](std::string_view device) {
    if (device.empty() || device == "reference") return false;
    return type == (device == "cpu" ? "bf16" : "f16");
  };
  LIMPID_CHECK(ArgumentError, type == "f32" || offers(first) || offers(second),
               "products of {} are for {}, and '{}' computes in f32: name another device "
               "(OpenOptions::device), or use f32 (OpenOptions::products)",
               type, type == "bf16" ? "the CPU" : "GPUs", first);
}

}  // namespace

Devices open_devices(const OpenOptions& options) {
  const ExecutorOptions executor{options.n_threads, options.isa, options.products};
  const int64_t n_layers = options.gpu_layers;
  LIMPID_CHECK(ArgumentError, n_layers >= OpenOptions::kLayersThatFit,
               "[engine] gpu_layers is {}, must be 0 or more, or {} for as many as fit", n_layers,
               OpenOptions::kLayersThatFit);
  std::string device = options.device;
  if (device == "cpu" && n_layers > 0) device = first_gpu(n_layers);
  const bool is_gpu = device != "cpu" && device != "reference";
  if (n_layers == 0) device = "cpu";
  const bool is_shared = n_layers > 0 || (is_gpu && n_layers == OpenOptions::kLayersThatFit);
  LIMPID_CHECK(ArgumentError, is_shared || options.split == "cpu",
               "layers are to be split with '{}', but '{}' has all of them: give the number of "
               "layers that the device should hold (OpenOptions::gpu_layers)",
               options.split, device);
  // Only with a number of layers is it certain that the second device gets some.
  const bool has_number = n_layers > 0 && n_layers != INT64_MAX;
  check_products(options.products, device, has_number ? options.split : "");
  Devices devices{make_executor(device, executor), nullptr, device};
  if (is_shared) {
    devices.second = make_executor(options.split, executor);
    devices.second_name = options.split;
  }
  return devices;
}

std::unique_ptr<Executor> join_devices(Devices devices, const MemoryPlan& plan,
                                       const WrapExecutor& wrap) {
  std::unique_ptr<Executor> executor = std::move(devices.first);
  if (plan.devices.size() > 1) {
    executor = std::make_unique<LayeredExecutor>(std::move(executor), std::move(devices.second),
                                                 plan.devices.front().end_layer,
                                                 plan.devices.back().end_layer);
  } else if (devices.second && plan.devices.size() == 1 &&
             plan.devices.front().device != devices.first_name) {
    executor = std::move(devices.second);  // no layer fits on the device
  }
  return wrap ? wrap(std::move(executor)) : std::move(executor);
}

}  // namespace limpid
