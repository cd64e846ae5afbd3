// The functions of CUDA's driver and of NVRTC, its compiler, that cuda_api.cpp uses, found at run
// time. Declared here, so that a build needs no CUDA package (specifications: NVIDIA, CUDA Driver
// API 12, NVRTC 12; the functions are the same since CUDA 11.8).
#pragma once

#include <cstddef>
#include <string>

namespace limpid::gpu::cuda {

using Status = int;  // CUresult, nvrtcResult: 0, or the positive number of an error
using DeviceNumber = int;
using Address = unsigned long long;  // of device memory
using Context = struct OpaqueContext*;
using Stream = struct OpaqueStream*;
using Module = struct OpaqueModule*;
using Function = struct OpaqueFunction*;
using Graph = struct OpaqueGraph*;          // what a stream captured
using GraphExec = struct OpaqueGraphExec*;  // and made ready to launch
using NvrtcProgram = struct OpaqueProgram*;

// Constants of the specification.
inline constexpr Status kOutOfMemory = 2;
inline constexpr int kMultiprocessorCount = 16;
inline constexpr int kComputeCapabilityMajor = 75;
inline constexpr int kComputeCapabilityMinor = 76;
inline constexpr unsigned kStreamNonBlocking = 1;
inline constexpr int kMaxDynamicSharedBytes = 8;  // of a function
inline constexpr int kCaptureThreadLocal = 1;  // only this thread's calls can disturb the capture

// CUlaunchAttribute: a number and a union of 64 bytes. The only one that is used lets a kernel
// begin before the one before has ended.
struct LaunchAttribute {
  alignas(8) int id;
  alignas(8) int value[16];
};
inline constexpr int kProgrammaticStreamSerialization = 6;

// CUlaunchConfig.
struct LaunchConfig {
  unsigned groups[3];
  unsigned items[3];
  unsigned shared_bytes;
  Stream stream;
  const LaunchAttribute* attributes;
  unsigned n_attributes;
};

// LIMPID_CUDA(member, symbol, result, parameters) for each function of libcuda.so.1. Symbols end in
// _v2 where sizes have become 64 bits wide.
#define LIMPID_CUDA_FUNCTIONS                                                                    \
  LIMPID_CUDA(init, cuInit, Status, (unsigned))                                                  \
  LIMPID_CUDA(driver_version, cuDriverGetVersion, Status, (int*))                                \
  LIMPID_CUDA(error_name, cuGetErrorName, Status, (Status, const char**))                        \
  LIMPID_CUDA(error_string, cuGetErrorString, Status, (Status, const char**))                    \
  LIMPID_CUDA(device_count, cuDeviceGetCount, Status, (int*))                                    \
  LIMPID_CUDA(device_get, cuDeviceGet, Status, (DeviceNumber*, int))                             \
  LIMPID_CUDA(device_name, cuDeviceGetName, Status, (char*, int, DeviceNumber))                  \
  LIMPID_CUDA(device_memory, cuDeviceTotalMem_v2, Status, (size_t*, DeviceNumber))               \
  LIMPID_CUDA(device_attribute, cuDeviceGetAttribute, Status, (int*, int, DeviceNumber))         \
  LIMPID_CUDA(retain_context, cuDevicePrimaryCtxRetain, Status, (Context*, DeviceNumber))        \
  LIMPID_CUDA(release_context, cuDevicePrimaryCtxRelease_v2, Status, (DeviceNumber))             \
  LIMPID_CUDA(set_context, cuCtxSetCurrent, Status, (Context))                                   \
  LIMPID_CUDA(create_stream, cuStreamCreate, Status, (Stream*, unsigned))                        \
  LIMPID_CUDA(destroy_stream, cuStreamDestroy_v2, Status, (Stream))                              \
  LIMPID_CUDA(synchronize, cuStreamSynchronize, Status, (Stream))                                \
  LIMPID_CUDA(allocate, cuMemAlloc_v2, Status, (Address*, size_t))                               \
  LIMPID_CUDA(memory_info, cuMemGetInfo_v2, Status, (size_t*, size_t*))                          \
  LIMPID_CUDA(free, cuMemFree_v2, Status, (Address))                                             \
  LIMPID_CUDA(to_device, cuMemcpyHtoDAsync_v2, Status, (Address, const void*, size_t, Stream))   \
  LIMPID_CUDA(to_host, cuMemcpyDtoHAsync_v2, Status, (void*, Address, size_t, Stream))           \
  LIMPID_CUDA(on_device, cuMemcpyDtoDAsync_v2, Status, (Address, Address, size_t, Stream))       \
  LIMPID_CUDA(fill, cuMemsetD8Async, Status, (Address, unsigned char, size_t, Stream))           \
  LIMPID_CUDA(load_module, cuModuleLoadData, Status, (Module*, const void*))                     \
  LIMPID_CUDA(unload_module, cuModuleUnload, Status, (Module))                                   \
  LIMPID_CUDA(get_function, cuModuleGetFunction, Status, (Function*, Module, const char*))       \
  LIMPID_CUDA(set_attribute, cuFuncSetAttribute, Status, (Function, int, int))                   \
  LIMPID_CUDA(launch, cuLaunchKernelEx, Status, (const LaunchConfig*, Function, void**, void**)) \
  LIMPID_CUDA(begin_capture, cuStreamBeginCapture_v2, Status, (Stream, int))                     \
  LIMPID_CUDA(end_capture, cuStreamEndCapture, Status, (Stream, Graph*))                         \
  LIMPID_CUDA(instantiate, cuGraphInstantiateWithFlags, Status,                                  \
              (GraphExec*, Graph, unsigned long long))                                           \
  LIMPID_CUDA(launch_graph, cuGraphLaunch, Status, (GraphExec, Stream))                          \
  LIMPID_CUDA(destroy_graph, cuGraphDestroy, Status, (Graph))                                    \
  LIMPID_CUDA(destroy_graph_exec, cuGraphExecDestroy, Status, (GraphExec))

// The same for libnvrtc.so.
#define LIMPID_NVRTC_FUNCTIONS                                                                \
  LIMPID_CUDA(error_string, nvrtcGetErrorString, const char*, (Status))                       \
  LIMPID_CUDA(                                                                                \
      create, nvrtcCreateProgram, Status,                                                     \
      (NvrtcProgram*, const char*, const char*, int, const char* const*, const char* const*)) \
  LIMPID_CUDA(compile, nvrtcCompileProgram, Status, (NvrtcProgram, int, const char* const*))  \
  LIMPID_CUDA(destroy, nvrtcDestroyProgram, Status, (NvrtcProgram*))                          \
  LIMPID_CUDA(cubin_size, nvrtcGetCUBINSize, Status, (NvrtcProgram, size_t*))                 \
  LIMPID_CUDA(cubin, nvrtcGetCUBIN, Status, (NvrtcProgram, char*))                            \
  LIMPID_CUDA(log_size, nvrtcGetProgramLogSize, Status, (NvrtcProgram, size_t*))              \
  LIMPID_CUDA(log, nvrtcGetProgramLog, Status, (NvrtcProgram, char*))

// A type and a name cannot be in parentheses. NOLINTNEXTLINE(bugprone-macro-parentheses)
#define LIMPID_CUDA(member, symbol, result, parameters) result(*member) parameters = nullptr;
struct DriverFunctions {
  LIMPID_CUDA_FUNCTIONS
};
struct NvrtcFunctions {
  LIMPID_NVRTC_FUNCTIONS
};
#undef LIMPID_CUDA

// Loaded at the first call; null, and `problem`, where the library is not there.
const DriverFunctions* driver_functions(std::string& problem);
const NvrtcFunctions* nvrtc_functions(std::string& problem);

}  // namespace limpid::gpu::cuda
