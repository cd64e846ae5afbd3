// What the parts of the double share: the objects behind the driver's handles, and the queue of a
// stream. cuda_double.cpp says what the double is for.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "executor/gpu/cuda_functions.h"
#include "executor/gpu/gpu_api.h"

namespace cuda_double {

using limpid::gpu::Argument;
using limpid::gpu::cuda::Address;
using limpid::gpu::cuda::LaunchConfig;
using limpid::gpu::cuda::Status;

inline constexpr Status kOk = 0;
inline constexpr Status kInvalidValue = 1;
inline constexpr Status kOutOfMemory = 2;
inline constexpr Status kInvalidContext = 201;
inline constexpr Status kInvalidImage = 200;
inline constexpr Status kNotFound = 500;
inline constexpr Status kLaunchFailed = 719;
inline constexpr Status kCaptureUnsupported = 900;
inline constexpr Status kNotCapturing = 904;
inline constexpr Status kCompilation = 6;  // of NVRTC
inline constexpr uint64_t kMemoryBytes = uint64_t{8} << 30;
inline constexpr Address kApart = Address{1} << 40;  // of two buffers' addresses
inline constexpr const char* kMagic = "cuda double ";
inline constexpr unsigned kMostGroupsY = 65535;

struct Function {
  std::unique_ptr<limpid::gpu::Kernel> kernel;
  unsigned n_items;
  unsigned most_shared_bytes = 48U << 10;  // as cuFuncSetAttribute allowed
  std::vector<std::string> parameters;     // "pointer", "int", "wide", "float"
};

struct Module {
  std::unique_ptr<limpid::gpu::Program> program;
  std::string text;
  std::map<std::string, std::unique_ptr<Function>> functions;
};

// A launch as the driver keeps it: buffers by address.
struct LaunchRecord {
  const Function* function;
  unsigned groups_x;
  unsigned groups_y;
  std::vector<std::variant<Address, int32_t, int64_t, float>> arguments;
};

struct Stream {
  std::vector<std::function<void()>> waiting;
  bool captures = false;
  bool is_disturbed = false;  // something else than a launch came while it captured
  std::vector<LaunchRecord> captured;
};

struct Graph {
  std::vector<LaunchRecord> launches;
};

struct NvrtcProgram {
  std::string name;
  std::string text;
  std::string log;
  bool is_compiled = false;
};

// All that a process has of the driver.
struct Driver {
  // Never deleted: when this object is, PoCL may have ended already.
  limpid::gpu::Device* device = nullptr;
  std::map<Address, std::unique_ptr<limpid::gpu::Buffer>> buffers;  // by first address
  std::set<std::unique_ptr<Module>> modules;
  std::set<std::unique_ptr<Stream>> streams;
  std::set<std::unique_ptr<Graph>> graphs;
  std::set<std::unique_ptr<Graph>> graph_execs;
  uint64_t n_graph_launches = 0;
  std::string fails;  // the call that fails the next time, once
  std::set<NvrtcProgram*> programs;
  Address next = kApart;
  uint64_t n_bytes = 0;
  int n_contexts = 0;    // retained
  Status failure = kOk;  // of something asynchronous; stays

  ~Driver();
};

Driver& driver();
// Whether this thread has made the context current.
bool& is_current();

// The buffer that [address, address + n) lies in, and where; null when there is none.
std::pair<limpid::gpu::Buffer*, uint64_t> find(Address address, uint64_t n);
// The object of a handle; null when there is none.
template <class T>
T* find_in(const std::set<std::unique_ptr<T>>& all, const void* handle) {
  for (const auto& each : all)
    if (each.get() == handle) return each.get();
  return nullptr;
}
template <class T>
Status erase_from(std::set<std::unique_ptr<T>>& all, const void* handle) {
  return std::erase_if(all, [&](const auto& each) { return each.get() == handle; }) == 1
             ? kOk
             : kInvalidValue;
}
Stream* find_stream(void* handle);
// Whether a test wants this call to fail, and it has not yet.
bool is_to_fail(std::string_view call);

// Memory is neither taken nor given back while a stream captures.
bool disturbs_capture();
Status run_waiting(Stream& stream);
Status enqueue(void* stream, std::function<void()> task);
// Checks the function and the buffers of a launch, as they are now.
Status enqueue_launch(void* stream, const LaunchRecord& record);

}  // namespace cuda_double
