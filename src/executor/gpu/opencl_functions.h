// The functions of OpenCL 1.2 that opencl_api.cpp uses, found in the loader's library at run time.
// Declared here, so that a build needs no header of OpenCL (specification: Khronos, OpenCL
// API 1.2).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace limpid::gpu::opencl {

using Status = int32_t;               // 0, or the negative number of an error
using Handle = struct OpaqueHandle*;  // of a platform, device, context, queue, buffer, …
using Property = intptr_t;
using Notify = void (*)(Handle, void*);
using NotifyContext = void (*)(const char*, const void*, size_t, void*);

// Constants, with the names of the specification.
inline constexpr Status kMemObjectAllocationFailure = -4;
inline constexpr Status kOutOfResources = -5;
inline constexpr Status kOutOfHostMemory = -6;
inline constexpr Status kInvalidBufferSize = -61;
inline constexpr uint64_t kDeviceTypeAll = 0xFFFFFFFF;
inline constexpr uint64_t kDeviceTypeCpu = 1 << 1;
inline constexpr uint64_t kMemReadWrite = 1 << 0;
inline constexpr uint32_t kPlatformName = 0x0902;
inline constexpr uint32_t kDeviceType = 0x1000;
inline constexpr uint32_t kDeviceMaxComputeUnits = 0x1002;
inline constexpr uint32_t kDeviceMaxMemAllocSize = 0x1010;
inline constexpr uint32_t kDeviceGlobalMemSize = 0x101F;
inline constexpr uint32_t kDeviceName = 0x102B;
inline constexpr uint32_t kDriverVersion = 0x102D;
inline constexpr uint32_t kProgramBinarySizes = 0x1165;
inline constexpr uint32_t kProgramBinaries = 0x1166;
inline constexpr uint32_t kProgramBuildLog = 0x1183;

// LIMPID_OPENCL(name, result, parameters) for each function.
#define LIMPID_OPENCL_FUNCTIONS                                                                    \
  LIMPID_OPENCL(clGetPlatformIDs, Status, (uint32_t, Handle*, uint32_t*))                          \
  LIMPID_OPENCL(clGetPlatformInfo, Status, (Handle, uint32_t, size_t, void*, size_t*))             \
  LIMPID_OPENCL(clGetDeviceIDs, Status, (Handle, uint64_t, uint32_t, Handle*, uint32_t*))          \
  LIMPID_OPENCL(clGetDeviceInfo, Status, (Handle, uint32_t, size_t, void*, size_t*))               \
  LIMPID_OPENCL(clCreateContext, Handle,                                                           \
                (const Property*, uint32_t, const Handle*, NotifyContext, void*, Status*))         \
  LIMPID_OPENCL(clReleaseContext, Status, (Handle))                                                \
  LIMPID_OPENCL(clCreateCommandQueue, Handle, (Handle, Handle, uint64_t, Status*))                 \
  LIMPID_OPENCL(clReleaseCommandQueue, Status, (Handle))                                           \
  LIMPID_OPENCL(clFlush, Status, (Handle))                                                         \
  LIMPID_OPENCL(clFinish, Status, (Handle))                                                        \
  LIMPID_OPENCL(clCreateBuffer, Handle, (Handle, uint64_t, size_t, void*, Status*))                \
  LIMPID_OPENCL(clReleaseMemObject, Status, (Handle))                                              \
  LIMPID_OPENCL(                                                                                   \
      clEnqueueReadBuffer, Status,                                                                 \
      (Handle, Handle, uint32_t, size_t, size_t, void*, uint32_t, const Handle*, Handle*))         \
  LIMPID_OPENCL(                                                                                   \
      clEnqueueWriteBuffer, Status,                                                                \
      (Handle, Handle, uint32_t, size_t, size_t, const void*, uint32_t, const Handle*, Handle*))   \
  LIMPID_OPENCL(                                                                                   \
      clEnqueueCopyBuffer, Status,                                                                 \
      (Handle, Handle, Handle, size_t, size_t, size_t, uint32_t, const Handle*, Handle*))          \
  LIMPID_OPENCL(                                                                                   \
      clEnqueueFillBuffer, Status,                                                                 \
      (Handle, Handle, const void*, size_t, size_t, size_t, uint32_t, const Handle*, Handle*))     \
  LIMPID_OPENCL(clCreateProgramWithSource, Handle,                                                 \
                (Handle, uint32_t, const char**, const size_t*, Status*))                          \
  LIMPID_OPENCL(                                                                                   \
      clCreateProgramWithBinary, Handle,                                                           \
      (Handle, uint32_t, const Handle*, const size_t*, const unsigned char**, Status*, Status*))   \
  LIMPID_OPENCL(clBuildProgram, Status,                                                            \
                (Handle, uint32_t, const Handle*, const char*, Notify, void*))                     \
  LIMPID_OPENCL(clGetProgramInfo, Status, (Handle, uint32_t, size_t, void*, size_t*))              \
  LIMPID_OPENCL(clGetProgramBuildInfo, Status, (Handle, Handle, uint32_t, size_t, void*, size_t*)) \
  LIMPID_OPENCL(clReleaseProgram, Status, (Handle))                                                \
  LIMPID_OPENCL(clCreateKernel, Handle, (Handle, const char*, Status*))                            \
  LIMPID_OPENCL(clReleaseKernel, Status, (Handle))                                                 \
  LIMPID_OPENCL(clSetKernelArg, Status, (Handle, uint32_t, size_t, const void*))                   \
  LIMPID_OPENCL(clEnqueueNDRangeKernel, Status,                                                    \
                (Handle, Handle, uint32_t, const size_t*, const size_t*, const size_t*, uint32_t,  \
                 const Handle*, Handle*))

// As members of these names.
struct Functions {
// A type and a name cannot be in parentheses. NOLINTNEXTLINE(bugprone-macro-parentheses)
#define LIMPID_OPENCL(name, result, parameters) result(*name) parameters = nullptr;
  LIMPID_OPENCL_FUNCTIONS
#undef LIMPID_OPENCL
};

// The functions, loaded at the first call; null, and `problem`, without OpenCL.
const Functions* functions(std::string& problem);

}  // namespace limpid::gpu::opencl
