#include "executor/gpu/gpu_devices.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/parse_number.h"
#include "base/stopwatch.h"
#include "executor/gpu/gpu_executor.h"
#include "executor/gpu/kernel_sources.h"
#include "executor/gpu/program_cache.h"

namespace limpid {

void gpu::Device::fail(std::string_view call, std::string_view what, std::string_view status,
                       bool is_out_of_memory) const {
  throw ResourceError(fmt::format(
      "[{}] {}: {}{}{} failed: {}; {}", info_.api, info_.name, call, what.empty() ? "" : " of ",
      what, status,
      is_out_of_memory ? "the device has too little memory: use a smaller context, a smaller batch "
                         "or a model of fewer bits"
                       : "look for a newer driver, or use another device"));
}

std::vector<GpuApi> gpu_apis() {
  return {{"cuda", gpu::cuda_devices()}, {"opencl", gpu::opencl_devices()}};
}

namespace {

gpu::DeviceList devices_of(std::string_view api) {
  return api == "cuda" ? gpu::cuda_devices() : gpu::opencl_devices();
}

// The names that make_executor takes on this machine, less the reference.
std::string devices_here() {
  std::string names = "cpu";
  for (const auto& [api, list] : gpu_apis()) {
    if (!list.devices.empty()) names += fmt::format(", {}", api);
  }
  return names;
}

struct DeviceName {
  std::string_view api;
  int index;
};

// Nothing when the name is of another kind.
std::optional<DeviceName> parse_name(std::string_view name) {
  const size_t colon = std::min(name.find(':'), name.size());
  const std::string_view api = name.substr(0, colon);
  if (api != "opencl" && api != "cuda") return std::nullopt;
  const auto index = colon < name.size() ? parse_number<int>(name.substr(colon + 1)) : 0;
  LIMPID_CHECK(ArgumentError, index.has_value(),
               "'{}' does not name a device: write {}, or {}:1 for its second device", name, api,
               api);
  return DeviceName{api, *index};
}

// Null when the name is of another kind.
std::unique_ptr<gpu::Device> open_device(std::string_view name) {
  const auto parsed = parse_name(name);
  if (!parsed) return nullptr;
  const auto [api, index] = *parsed;
  const gpu::DeviceList list = devices_of(api);
  LIMPID_CHECK(ResourceError, !list.devices.empty(),
               "[{}] {}; name a device that is here (OpenOptions::device): {}", api, list.problem,
               devices_here());
  LIMPID_CHECK(ArgumentError, index >= 0 && index < std::ssize(list.devices),
               "[{}] unknown device {}: devices are counted from 0, and the last is {}", api, index,
               list.devices.size() - 1);
  return api == "cuda" ? gpu::open_cuda_device(index) : gpu::open_opencl_device(index);
}

}  // namespace

std::unique_ptr<Executor> make_gpu_executor(std::string_view name, std::string_view products) {
  auto device = open_device(name);
  if (!device) return nullptr;
  return std::make_unique<GpuExecutor>(std::move(device),
                                       products == "f16" ? DType::kF16 : DType::kF32);
}

std::string device_without_kernels(std::string_view name) {
  const auto parsed = parse_name(name);
  if (!parsed) return "";
  const gpu::DeviceList list = devices_of(parsed->api);
  if (parsed->index < 0 || parsed->index >= std::ssize(list.devices)) return "";
  const gpu::DeviceInfo& info = list.devices[static_cast<size_t>(parsed->index)];
  return gpu::is_new_to_cache(info, gpu::op_program()) ? info.name : "";
}

// The best of several passes. Copies are only launched; reading one element waits for their end,
// which takes a GPU as long as copying tens of megabytes.
double measure_gpu_copy(std::string_view name) {
  constexpr uint64_t kMostBytes = uint64_t{128} << 20;  // beyond the caches
  constexpr int kPasses = 5;
  const auto device = open_device(name);
  if (!device) return 0;
  const uint64_t available = device->available_memory();
  const uint64_t n_bytes =
      available == 0 ? kMostBytes : std::clamp<uint64_t>(available / 8, 4096, kMostBytes);
  const auto from = device->allocate(n_bytes, "a measurement");
  const auto to = device->allocate(n_bytes, "a measurement");
  device->zero(*from, 0, n_bytes);
  const int n_copies = device->info().is_cpu ? 1 : 8;  // of a pass
  double best = 0;
  for (int pass = 0; pass <= kPasses; ++pass) {  // the first one warms up and is not counted
    std::byte last[sizeof(float)];
    const Stopwatch watch;
    for (int i = 0; i < n_copies; ++i) device->copy(*from, *to, n_bytes);
    device->read(*to, 0, last);
    const double taken = watch.seconds();
    if (pass > 0) best = std::max(best, 2.0 * n_copies * static_cast<double>(n_bytes) / taken);
  }
  return best;
}

}  // namespace limpid
