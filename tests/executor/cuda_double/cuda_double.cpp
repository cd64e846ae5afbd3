// A double of CUDA's driver and of NVRTC, for machines without an NVIDIA GPU: a shared library with
// the functions of cuda_functions.h, found under the names libcuda.so.1 and libnvrtc.so.13. It runs
// the same kernels by OpenCL, so the host's side of CUDA works from loading to logits.
//
// It is stricter than a driver:
// - Every handle, address, size and bound is checked, and that the context is current.
// - What is asynchronous happens as late as is allowed: copies and launches wait in the stream
//   until somebody synchronises, and a read before that sees old bytes. Only memory of the host
//   that is copied to the device is taken at once, as drivers do where it is not page-locked.
// - Groups must have the size that the kernel was compiled for.
// - A stream that captures takes launches only. A graph keeps their arguments as they were, and
//   what they point to must be there when the graph is launched.
// - What was not released when the process ends is an error, exit code 3.
// "Machine code" is the text of a program behind a line with its name. The parameters of a kernel
// are read from the text. Programs have the names that they have for OpenCL, so what was compiled
// for its tests is found in the cache.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <regex>

#include "executor/cuda_double/driver.h"
#include "executor/gpu/gpu_api.h"
#include "executor/gpu/program_cache.h"

namespace cuda_double {
namespace {

constexpr unsigned kMostSharedBytes = 227U << 10;  // of a device of compute capability 10.0

// The parameters that a macro stands for: MATRICES of octets.cl.h, FUSED of linear.cl.h, ATTENTION
// of attention_work.cl.h.
std::string parameters_of(const std::string& text, const std::string& macro) {
  const std::regex definition("#define " + macro + "((?:.*\\\\\n)*.*)\n");
  std::smatch found;
  if (!std::regex_search(text, found, definition)) return "";
  return std::regex_replace(found[1].str(), std::regex("[\\\\\n]"), " ");
}

// Of "KERNEL(128) scale(GLOBAL const float* x, float factor, …)".
std::unique_ptr<Function> find_function(Module& module, const std::string& name) {
  const std::regex declaration("KERNEL(?:_\\w+)?\\((\\d+)(?:, \\w+)?\\)\\s+" + name +
                               "\\(([^)]*)\\)");
  std::smatch found;
  if (!std::regex_search(module.text, found, declaration)) return nullptr;
  auto function = std::make_unique<Function>();
  function->n_items = static_cast<unsigned>(std::stoul(found[1]));
  std::string list = found[2];
  for (const char* macro : {"MATRICES", "FUSED", "ATTENTION"})
    list = std::regex_replace(list, std::regex(macro), parameters_of(module.text, macro));
  for (size_t at = 0; at < list.size();) {
    const size_t comma = std::min(list.find(',', at), list.size());
    const std::string parameter = list.substr(at, comma - at);
    const size_t word = parameter.find_first_not_of(" \n");
    function->parameters.push_back(parameter.find("GLOBAL") != std::string::npos
                                       ? "pointer"
                                       : parameter.substr(word, parameter.find(' ', word) - word));
    at = comma + 1;
  }
  function->kernel = module.program->kernel(name);
  return function;
}

template <class Number>
Number number(const void* place) {
  Number value;
  std::memcpy(&value, place, sizeof(value));
  return value;
}

}  // namespace

// The names are the driver's. NOLINTBEGIN(readability-identifier-naming)
extern "C" {

// ---- the driver ---------------------------------------------------------------------------------

Status cuInit(unsigned flags) {
  if (flags != 0) return kInvalidValue;
  if (driver().device != nullptr) return kOk;
  constexpr Status kNoDevice = 100;
  if (limpid::gpu::opencl_devices().devices.empty()) return kNoDevice;
  driver().device = limpid::gpu::open_opencl_device(0).release();
  return kOk;
}
Status cuDriverGetVersion(int* version) {
  *version = 13000;
  return kOk;
}
Status cuGetErrorName(Status status, const char** name) {
  *name = status == kOutOfMemory ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR";
  return kOk;
}
Status cuGetErrorString(Status status, const char** text) {
  *text = status == kOutOfMemory      ? "out of memory"
          : status == kInvalidContext ? "no current context"
          : status == kNotFound       ? "named symbol not found"
                                      : "refused by the double of the driver";
  return kOk;
}
Status cuDeviceGetCount(int* count) {
  *count = 1;
  return kOk;
}
Status cuDeviceGet(int* device, int index) {
  *device = 7;  // not the index
  return index == 0 ? kOk : kInvalidValue;
}
Status cuDeviceGetName(char* name, int size, int device) {
  if (device != 7) return kInvalidValue;
  std::snprintf(name, static_cast<size_t>(size), "double of a GPU");
  return kOk;
}
Status cuDeviceTotalMem_v2(size_t* n_bytes, int device) {
  *n_bytes = kMemoryBytes;
  return device == 7 ? kOk : kInvalidValue;
}
Status cuDeviceGetAttribute(int* value, int attribute, int device) {
  *value = attribute == 16 ? 2 : attribute == 75 ? 10 : 0;
  return device == 7 ? kOk : kInvalidValue;
}
Status cuDevicePrimaryCtxRetain(void** context, int device) {
  if (device != 7) return kInvalidValue;
  ++driver().n_contexts;
  *context = &driver();
  return kOk;
}
Status cuDevicePrimaryCtxRelease_v2(int device) {
  if (device != 7 || driver().n_contexts == 0) return kInvalidValue;
  --driver().n_contexts;
  return kOk;
}
Status cuCtxSetCurrent(void* context) {
  if (context != &driver() || driver().n_contexts == 0) return kInvalidContext;
  is_current() = true;
  return kOk;
}
Status cuStreamCreate(void** stream, unsigned /*flags*/) {
  if (!is_current()) return kInvalidContext;
  *stream = driver().streams.insert(std::make_unique<Stream>()).first->get();
  return kOk;
}
Status cuStreamDestroy_v2(void* stream) {
  Stream* found = find_stream(stream);
  if (!is_current() || found == nullptr || !found->waiting.empty() || found->captures)
    return kInvalidValue;
  return erase_from(driver().streams, found);
}
Status cuStreamSynchronize(void* stream) {
  Stream* found = find_stream(stream);
  if (!is_current() || found == nullptr) return kInvalidValue;
  return disturbs_capture() ? kCaptureUnsupported : run_waiting(*found);
}

Status cuMemAlloc_v2(Address* address, size_t n_bytes) {
  if (!is_current()) return kInvalidContext;
  if (is_to_fail("cuMemAlloc")) return kOutOfMemory;
  if (n_bytes == 0) return kInvalidValue;
  if (disturbs_capture()) return kCaptureUnsupported;
  if (n_bytes > kMemoryBytes - driver().n_bytes) return kOutOfMemory;
  *address = driver().next;
  driver().next += kApart;
  driver().n_bytes += n_bytes;
  driver().buffers[*address] = driver().device->allocate(n_bytes, "a test");
  return kOk;
}
Status cuMemGetInfo_v2(size_t* n_free, size_t* n_all) {
  *n_all = kMemoryBytes;
  *n_free = kMemoryBytes - driver().n_bytes;
  return is_current() ? kOk : kInvalidContext;
}
Status cuMemFree_v2(Address address) {
  const auto found = driver().buffers.find(address);
  if (!is_current() || found == driver().buffers.end()) return kInvalidValue;
  if (disturbs_capture()) return kCaptureUnsupported;
  for (const auto& stream : driver().streams) run_waiting(*stream);
  driver().n_bytes -= found->second->n_bytes();
  driver().buffers.erase(found);
  return kOk;
}
Status cuMemcpyHtoDAsync_v2(Address to, const void* from, size_t n, void* stream) {
  const auto [buffer, offset] = find(to, n);
  if (buffer == nullptr) return kInvalidValue;
  const auto* begin = static_cast<const std::byte*>(from);
  return enqueue(stream, [=, bytes = std::vector(begin, begin + n), buffer = buffer,
                          offset = offset] { driver().device->write(*buffer, offset, bytes); });
}
Status cuMemcpyDtoHAsync_v2(void* to, Address from, size_t n, void* stream) {
  const auto [buffer, offset] = find(from, n);
  if (buffer == nullptr) return kInvalidValue;
  if (is_to_fail("cuMemcpyDtoHAsync")) return kLaunchFailed;
  return enqueue(stream, [=, buffer = buffer, offset = offset] {
    driver().device->read(*buffer, offset, {static_cast<std::byte*>(to), n});
  });
}
Status cuMemcpyDtoDAsync_v2(Address to, Address from, size_t n, void* stream) {
  const auto [to_buffer, to_offset] = find(to, n);
  const auto [from_buffer, from_offset] = find(from, n);
  if (to_buffer == nullptr || from_buffer == nullptr || to_offset != 0 || from_offset != 0)
    return kInvalidValue;
  return enqueue(stream,
                 [=, to = to_buffer, from = from_buffer] { driver().device->copy(*from, *to, n); });
}
Status cuMemsetD8Async(Address to, unsigned char value, size_t n, void* stream) {
  const auto [buffer, offset] = find(to, n);
  if (buffer == nullptr || value != 0) return kInvalidValue;
  return enqueue(
      stream, [=, buffer = buffer, offset = offset] { driver().device->zero(*buffer, offset, n); });
}

Status cuModuleLoadData(void** module, const void* image) {
  if (!is_current()) return kInvalidContext;
  const std::string text = static_cast<const char*>(image);
  if (!text.starts_with(kMagic)) return kInvalidImage;
  const size_t line = text.find('\n');
  const size_t name = std::strlen(kMagic);
  auto loaded = std::make_unique<Module>();
  loaded->text = text.substr(line + 1);
  loaded->program =
      limpid::gpu::cached_program(*driver().device, {text.substr(name, line - name), loaded->text});
  *module = driver().modules.insert(std::move(loaded)).first->get();
  return kOk;
}
Status cuModuleUnload(void* module) {
  if (!is_current()) return kInvalidContext;
  for (const auto& stream : driver().streams) run_waiting(*stream);
  return erase_from(driver().modules, module);
}
Status cuModuleGetFunction(void** function, void* module, const char* name) {
  if (!is_current()) return kInvalidContext;
  for (const auto& each : driver().modules) {
    if (each.get() != module) continue;
    std::unique_ptr<Function>& found = each->functions[name];
    if (!found) found = find_function(*each, name);
    *function = found.get();
    return found ? kOk : kNotFound;
  }
  return kInvalidValue;
}

Status cuFuncSetAttribute(void* handle, int attribute, int value) {
  for (const auto& module : driver().modules) {
    for (const auto& [name, each] : module->functions) {
      if (each.get() != handle) continue;
      if (attribute != limpid::gpu::cuda::kMaxDynamicSharedBytes || value < 0 ||
          static_cast<unsigned>(value) > kMostSharedBytes)
        return kInvalidValue;
      each->most_shared_bytes = static_cast<unsigned>(value);
      return kOk;
    }
  }
  return kInvalidValue;
}

Status cuLaunchKernelEx(const LaunchConfig* config, void* handle, void** parameters, void** extra) {
  if (is_to_fail("cuLaunchKernelEx")) return kLaunchFailed;
  const Function* function = nullptr;
  for (const auto& module : driver().modules) {
    for (const auto& [name, each] : module->functions)
      if (each.get() == handle) function = each.get();
  }
  const auto& [groups_x, groups_y, groups_z] = config->groups;
  const auto& [items_x, items_y, items_z] = config->items;
  // The double's compute capability is 10.0, whose kernels overlap.
  if (config->n_attributes != 1 ||
      config->attributes->id != limpid::gpu::cuda::kProgrammaticStreamSerialization ||
      config->attributes->value[0] != 1)
    return kInvalidValue;
  if (function == nullptr || groups_x == 0 || groups_y == 0 || groups_y > kMostGroupsY ||
      groups_z != 1 || items_x != function->n_items || items_y != 1 || items_z != 1 ||
      config->shared_bytes > function->most_shared_bytes || extra != nullptr)
    return kInvalidValue;
  LaunchRecord record{function, groups_x, groups_y, {}};
  for (size_t i = 0; i < function->parameters.size(); ++i) {
    const std::string& type = function->parameters[i];
    const void* place = parameters[i];
    if (type == "pointer") record.arguments.emplace_back(number<Address>(place));
    if (type == "int") record.arguments.emplace_back(number<int32_t>(place));
    if (type == "wide") record.arguments.emplace_back(number<int64_t>(place));
    if (type == "float") record.arguments.emplace_back(number<float>(place));
  }
  Stream* capturing = find_stream(config->stream);
  if (capturing == nullptr || !capturing->captures) return enqueue_launch(config->stream, record);
  capturing->captured.push_back(std::move(record));
  return is_current() ? kOk : kInvalidContext;
}

// ---- graphs -------------------------------------------------------------------------------------

Status cuStreamBeginCapture_v2(void* stream, int mode) {
  constexpr int kThreadLocal = 1;
  Stream* found = find_stream(stream);
  if (!is_current() || found == nullptr || found->captures || mode != kThreadLocal)
    return kInvalidValue;
  found->captures = true;
  found->is_disturbed = false;
  return kOk;
}
Status cuStreamEndCapture(void* stream, void** graph) {
  Stream* found = find_stream(stream);
  if (!is_current() || found == nullptr) return kInvalidValue;
  if (!found->captures) return kNotCapturing;
  found->captures = false;
  auto made = std::make_unique<Graph>(Graph{std::exchange(found->captured, {})});
  if (found->is_disturbed) return kCaptureUnsupported;
  *graph = driver().graphs.insert(std::move(made)).first->get();
  return kOk;
}
Status cuGraphInstantiateWithFlags(void** exec, void* graph, unsigned long long flags) {
  const Graph* found = find_in(driver().graphs, graph);
  if (!is_current() || found == nullptr || flags != 0) return kInvalidValue;
  *exec = driver().graph_execs.insert(std::make_unique<Graph>(*found)).first->get();
  return kOk;
}
Status cuGraphLaunch(void* exec, void* stream) {
  const Graph* found = find_in(driver().graph_execs, exec);
  if (!is_current() || found == nullptr) return kInvalidValue;
  if (is_to_fail("cuGraphLaunch")) return kLaunchFailed;
  ++driver().n_graph_launches;
  for (const LaunchRecord& record : found->launches)
    if (const Status status = enqueue_launch(stream, record); status != kOk) return status;
  return kOk;
}
Status cuGraphDestroy(void* graph) { return erase_from(driver().graphs, graph); }
Status cuGraphExecDestroy(void* exec) { return erase_from(driver().graph_execs, exec); }

// For tests; NVIDIA's driver has no such functions. How many graphs were launched.
uint64_t limpid_double_graph_launches() { return driver().n_graph_launches; }
// The next such call fails.
void limpid_double_fail(const char* call) { driver().fails = call; }

}  // extern "C"
// NOLINTEND(readability-identifier-naming)

}  // namespace cuda_double
