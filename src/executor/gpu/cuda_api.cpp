// Implements gpu_api.h with CUDA. A device uses its primary context, which other code of the
// process may use too, and a stream of its own. A context is current for one thread, and different
// threads may drive a model one after the other, so every call makes the context current.
#include <algorithm>
#include <array>
#include <exception>
#include <utility>

#include "base/check.h"
#include "executor/gpu/cuda_functions.h"
#include "executor/gpu/cuda_graphs.h"
#include "executor/gpu/dynamic_library.h"
#include "executor/gpu/gpu_api.h"
#include "executor/gpu/nvrtc.h"

namespace limpid::gpu {

namespace cuda {

const DriverFunctions* driver_functions(std::string& problem) {
  static constexpr const char* kNames[] = {"libcuda.so.1", "libcuda.so"};
  static const auto loaded =
      load_functions<DriverFunctions>(kNames, {"NVIDIA's driver", "", "; install a newer one"},
                                      [](DriverFunctions& functions, const auto& find) {
#define LIMPID_CUDA(member, symbol, type, parameters) find(#symbol, functions.member);
                                        LIMPID_CUDA_FUNCTIONS
#undef LIMPID_CUDA
                                      });
  return loaded.get(problem);
}

}  // namespace cuda

namespace {

using cuda::Address;
using cuda::DriverFunctions;
using cuda::Status;

std::string status_text(const DriverFunctions& cu, Status status) {
  const char* name = nullptr;
  const char* text = nullptr;
  cu.error_name(status, &name);
  cu.error_string(status, &text);
  return fmt::format("{} ({})", text == nullptr ? "unknown error" : text,
                     name == nullptr ? std::to_string(status) : name);
}

// The driver, ready for use. If it cannot be used: null, and `problem` says why.
const DriverFunctions* initialized_driver(std::string& problem) {
  const DriverFunctions* cu = cuda::driver_functions(problem);
  if (cu == nullptr) return nullptr;
  const Status status = cu->init(0);
  if (status == 0) return cu;
  problem = "NVIDIA's driver does not start: " + status_text(*cu, status);
  return nullptr;
}

constexpr int kHopper = 9;  // compute capability of the first GPUs whose kernels may overlap

DeviceInfo describe(const DriverFunctions& cu, int index) {
  DeviceInfo info;
  info.api = "cuda";
  info.index = index;
  cuda::DeviceNumber device = 0;
  if (cu.device_get(&device, index) != 0) return info;
  std::array<char, 256> name{};
  size_t memory = 0;
  int version = 0, major = 0, minor = 0;
  cu.device_name(name.data(), static_cast<int>(name.size()) - 1, device);
  cu.device_memory(&memory, device);
  cu.driver_version(&version);
  cu.device_attribute(&info.n_units, cuda::kMultiprocessorCount, device);
  cu.device_attribute(&major, cuda::kComputeCapabilityMajor, device);
  cu.device_attribute(&minor, cuda::kComputeCapabilityMinor, device);
  info.name = name.data();
  info.memory_bytes = memory;
  info.driver = fmt::format("CUDA {}.{}", version / 1000, version % 1000 / 10);
  info.has_wgmma = major == kHopper;  // later GPUs have others
  info.architecture = fmt::format("sm_{}{}{}", major, minor, info.has_wgmma ? "a" : "");
  info.options = fmt::format("{}", fmt::join(kNvrtcOptions, " "));
  return info;
}

// ---- one device ---------------------------------------------------------------------------------

// The primary context of a device, kept as long as anything is in it.
class Context {
 public:
  Context(const DriverFunctions& cu, cuda::DeviceNumber device, cuda::Context context)
      : cu_(cu), device_(device), context_(context) {}
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  ~Context() { cu_.release_context(device_); }

  const DriverFunctions& cu() const { return cu_; }
  Status make_current() const { return cu_.set_context(context_); }

 private:
  const DriverFunctions& cu_;
  cuda::DeviceNumber device_;
  cuda::Context context_;
};

class CudaBuffer final : public Buffer {
 public:
  CudaBuffer(std::shared_ptr<const Context> context, Address address, uint64_t n_bytes)
      : Buffer(n_bytes), context_(std::move(context)), address_(address) {}
  ~CudaBuffer() override {  // waits for what uses it
    context_->make_current();
    context_->cu().free(address_);
  }
  const Address& address() const { return address_; }

 private:
  std::shared_ptr<const Context> context_;
  Address address_;
};

const Address& address_of(const Buffer& buffer) {
  return static_cast<const CudaBuffer&>(buffer).address();
}

class CudaKernel final : public Kernel {
 public:
  CudaKernel(cuda::Function function, std::string name)
      : Kernel(std::move(name)), function_(function) {}
  cuda::Function function() const { return function_; }

  mutable int most_local_bytes = 48 << 10;  // beyond its arrays of fixed size, as allowed so far

 private:
  cuda::Function function_;
};

class CudaProgram final : public Program {
 public:
  CudaProgram(std::shared_ptr<const Context> context, cuda::Module module, std::string cubin)
      : context_(std::move(context)), module_(module), cubin_(std::move(cubin)) {}
  ~CudaProgram() override {
    context_->make_current();
    context_->cu().unload_module(module_);
  }

  std::unique_ptr<Kernel> kernel(const std::string& name) override {
    cuda::Function function = nullptr;
    Status status = context_->make_current();
    if (status == 0) status = context_->cu().get_function(&function, module_, name.c_str());
    LIMPID_CHECK(ResourceError, status == 0, "[cuda] unknown kernel '{}': {}", name,
                 status_text(context_->cu(), status));
    return std::make_unique<CudaKernel>(function, name);
  }
  std::string binary() override { return cubin_; }

 private:
  std::shared_ptr<const Context> context_;
  cuda::Module module_;
  std::string cubin_;
};

class CudaDevice final : public Device {
 public:
  CudaDevice(const DriverFunctions& cu, DeviceInfo description)
      : Device(std::move(description)), cu_(cu) {
    cuda::DeviceNumber device = 0;
    int major = 0;
    check(cu_.device_get(&device, info().index), "cuDeviceGet");
    check(cu_.device_attribute(&major, cuda::kComputeCapabilityMajor, device),
          "cuDeviceGetAttribute");
    queue_.overlaps = major >= kHopper;
    cuda::Context context = nullptr;
    check(cu_.retain_context(&context, device), "cuDevicePrimaryCtxRetain");
    context_ = std::make_shared<const Context>(cu_, device, context);
    make_current();
    check(cu_.create_stream(&queue_.stream, cuda::kStreamNonBlocking), "cuStreamCreate");
    graphs_ = std::make_unique<cuda::GraphCache>(cu_, queue_);
  }
  ~CudaDevice() override {
    context_->make_current();
    cu_.synchronize(queue_.stream);
    graphs_.reset();
    cu_.destroy_stream(queue_.stream);
  }

  uint64_t available_memory() const override {
    size_t n_free = 0;
    size_t n_all = 0;
    if (context_->make_current() != 0 || cu_.memory_info(&n_free, &n_all) != 0) return 0;
    return n_free;
  }
  std::unique_ptr<Buffer> allocate(uint64_t n_bytes, std::string_view purpose) override {
    make_current();
    n_bytes = std::max<uint64_t>(n_bytes, 1);
    Address address = 0;
    check(cu_.allocate(&address, n_bytes), "cuMemAlloc",
          fmt::format("{} bytes for {}", n_bytes, purpose));
    return std::make_unique<CudaBuffer>(context_, address, n_bytes);
  }
  void write(const Buffer& to, uint64_t offset, std::span<const std::byte> from) override {
    if (from.empty()) return;
    make_current();
    // The driver has copied memory that is not page-locked when this returns.
    check(cu_.to_device(address_of(to) + offset, from.data(), from.size(), queue_.stream),
          "cuMemcpyHtoDAsync");
  }
  void read(const Buffer& from, uint64_t offset, std::span<std::byte> to) override {
    if (to.empty()) return;
    make_current();
    check(cu_.to_host(to.data(), address_of(from) + offset, to.size(), queue_.stream),
          "cuMemcpyDtoHAsync");
    check(cu_.synchronize(queue_.stream), "cuStreamSynchronize");
  }
  void copy(const Buffer& from, const Buffer& to, uint64_t n_bytes) override {
    if (n_bytes == 0) return;
    make_current();
    check(cu_.on_device(address_of(to), address_of(from), n_bytes, queue_.stream),
          "cuMemcpyDtoDAsync");
  }
  void zero(const Buffer& buffer, uint64_t offset, uint64_t n_bytes) override {
    if (n_bytes == 0) return;
    make_current();
    check(cu_.fill(address_of(buffer) + offset, 0, n_bytes, queue_.stream), "cuMemsetD8Async");
  }

  std::unique_ptr<Program> compile(const ProgramSource& source) override {
    auto program = load(compile_to_cubin(source, info().architecture, info().name));
    LIMPID_CHECK(ResourceError, program != nullptr,
                 "[cuda] {}: the driver does not accept what the CUDA toolkit compiled for '{}'; "
                 "install a newer driver",
                 info().name, source.name);
    return program;
  }
  std::unique_ptr<Program> load(const std::string& binary) override {
    make_current();
    cuda::Module module = nullptr;
    if (cu_.load_module(&module, binary.data()) != 0) return nullptr;
    return std::make_unique<CudaProgram>(context_, module, binary);
  }

  void launch(const Kernel& kernel, const Grid& grid,
              std::span<const Argument> arguments) override {
    if (grid.groups_x == 0 || grid.groups_y == 0) return;
    std::array<uint64_t, cuda::LaunchList::kMostArguments> values{};
    LIMPID_ASSERT(arguments.size() <= values.size());
    std::ranges::transform(arguments, values.begin(), [](const Argument& a) {
      uint64_t value = 0;
      if (a.buffer() != nullptr) return uint64_t{address_of(*a.buffer())};
      std::memcpy(&value, a.value(), a.n_bytes());
      return value;
    });
    const auto& of_cuda = static_cast<const CudaKernel&>(kernel);
    const cuda::Function function = of_cuda.function();
    if (!records_) make_current();
    if (grid.local_bytes > of_cuda.most_local_bytes) {
      check(cu_.set_attribute(function, cuda::kMaxDynamicSharedBytes, grid.local_bytes),
            "cuFuncSetAttribute", kernel.name());
      of_cuda.most_local_bytes = grid.local_bytes;
    }
    recorded_.add(function, kernel, grid, std::span(values).first(arguments.size()));
    if (!records_) launch_recorded();
  }
  void begin_graph() override {
    make_current();
    records_ = true;
  }
  void end_graph() noexcept override {
    try {
      if (!failure_) make_current();
    } catch (...) {
      failure_ = std::current_exception();
    }
    recorded_.clear();
    records_ = false;
  }
  void flush() noexcept override {}  // a stream begins by itself

 private:
  // Before every other call: what was held back comes first.
  void make_current() {
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
    check(context_->make_current(), "cuCtxSetCurrent");
    if (!recorded_.empty()) launch_recorded();
  }
  void launch_recorded() {
    const Kernel* failed = nullptr;
    const Status status =
        records_ ? graphs_->launch(recorded_, failed) : recorded_.launch(cu_, queue_, failed);
    recorded_.clear();
    check(status, failed == nullptr ? "cuGraphLaunch" : "cuLaunchKernelEx",
          failed == nullptr ? "" : failed->name());
  }

  void check(Status status, std::string_view call, std::string_view what = {}) const {
    if (status != 0) fail(call, what, status_text(cu_, status), status == cuda::kOutOfMemory);
  }

  const DriverFunctions& cu_;
  std::shared_ptr<const Context> context_;
  cuda::Queue queue_{};
  std::unique_ptr<cuda::GraphCache> graphs_;
  bool records_ = false;  // launches are held back, for a graph
  cuda::LaunchList recorded_;
  std::exception_ptr failure_;  // of end_graph
};

}  // namespace

DeviceList cuda_devices() {
  DeviceList list;
  const DriverFunctions* cu = initialized_driver(list.problem);
  if (cu == nullptr) return list;
  int n = 0;
  if (cu->device_count(&n) != 0 || n == 0) {
    list.problem = "NVIDIA's driver finds no GPU";
    return list;
  }
  for (int i = 0; i < n; ++i) list.devices.push_back(describe(*cu, i));
  list.problem = nvrtc_problem();  // without it kernels cannot be compiled
  return list;
}

std::unique_ptr<Device> open_cuda_device(int index) {
  std::string problem;
  const DriverFunctions* cu = initialized_driver(problem);
  LIMPID_CHECK(ResourceError, cu != nullptr, "[cuda] {}", problem);
  return std::make_unique<CudaDevice>(*cu, describe(*cu, index));
}

}  // namespace limpid::gpu
