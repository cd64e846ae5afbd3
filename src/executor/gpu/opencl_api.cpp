// Implements gpu_api.h with OpenCL. A device has a context and a queue of its own. The queue runs
// in order, so nothing here waits for events.
#include <algorithm>
#include <array>
#include <utility>

#include "base/check.h"
#include "base/system_limits.h"
#include "executor/gpu/dynamic_library.h"
#include "executor/gpu/gpu_api.h"
#include "executor/gpu/opencl_functions.h"

namespace limpid::gpu {

namespace opencl {

const Functions* functions(std::string& problem) {
  static constexpr const char* kNames[] = {"libOpenCL.so.1", "libOpenCL.so"};
  static const auto loaded = load_functions<Functions>(
      kNames,
      {"the OpenCL loader", "; Debian's pocl-opencl-icd, or the GPU's driver, brings it",
       ", so it is older than 1.2"},
      [](Functions& functions, const auto& find) {
#define LIMPID_OPENCL(name, type, parameters) find(#name, functions.name);
        LIMPID_OPENCL_FUNCTIONS
#undef LIMPID_OPENCL
      });
  return loaded.get(problem);
}

}  // namespace opencl

namespace {

using opencl::Functions;
using opencl::Handle;
using opencl::Status;

// Warnings are for the authors of kernels, and some drivers print them.
constexpr const char* kOptions = "-cl-std=CL1.2 -w";
constexpr const char* kCpuOptions = "-cl-std=CL1.2 -w -DON_CPU";  // see kernels/dialect.h

// Errors that users meet; others are given by number.
std::string status_name(Status status) {
  constexpr std::pair<Status, const char*> kNames[] = {
      {-1, "CL_DEVICE_NOT_FOUND"},       {-2, "CL_DEVICE_NOT_AVAILABLE"},
      {-3, "CL_COMPILER_NOT_AVAILABLE"}, {-4, "CL_MEM_OBJECT_ALLOCATION_FAILURE"},
      {-5, "CL_OUT_OF_RESOURCES"},       {-6, "CL_OUT_OF_HOST_MEMORY"},
      {-11, "CL_BUILD_PROGRAM_FAILURE"}, {-36, "CL_INVALID_COMMAND_QUEUE"},
      {-42, "CL_INVALID_BINARY"},        {-46, "CL_INVALID_KERNEL_NAME"},
      {-52, "CL_INVALID_KERNEL_ARGS"},   {-54, "CL_INVALID_WORK_GROUP_SIZE"},
      {-61, "CL_INVALID_BUFFER_SIZE"}};
  for (const auto& [number, name] : kNames) {
    if (number == status) return fmt::format("{} ({})", name, status);
  }
  return fmt::format("error {}", status);
}

bool is_out_of_memory(Status status) {
  return status == opencl::kMemObjectAllocationFailure || status == opencl::kOutOfResources ||
         status == opencl::kOutOfHostMemory || status == opencl::kInvalidBufferSize;
}

// A string that a clGet…Info function gives: `get(size, memory, size_needed)`.
template <class Get>
std::string text_of(Get&& get) {
  size_t size = 0;
  if (get(0, nullptr, &size) != 0) return "";
  std::string text(size, '\0');
  if (get(size, text.data(), nullptr) != 0) return "";
  while (!text.empty() && text.back() == '\0') text.pop_back();
  return text;
}

struct FoundDevice {
  Handle handle;
  DeviceInfo info;
};

std::vector<FoundDevice> find_devices(const Functions& cl) {
  uint32_t n_platforms = 0;
  if (cl.clGetPlatformIDs(0, nullptr, &n_platforms) != 0) return {};
  std::vector<Handle> platforms(n_platforms);
  if (n_platforms == 0 || cl.clGetPlatformIDs(n_platforms, platforms.data(), nullptr) != 0)
    return {};
  std::vector<FoundDevice> found;
  for (const Handle platform : platforms) {
    uint32_t n_devices = 0;
    if (cl.clGetDeviceIDs(platform, opencl::kDeviceTypeAll, 0, nullptr, &n_devices) != 0) continue;
    std::vector<Handle> devices(n_devices);
    if (cl.clGetDeviceIDs(platform, opencl::kDeviceTypeAll, n_devices, devices.data(), nullptr) !=
        0)
      continue;
    const std::string platform_name = text_of([&](size_t n, void* to, size_t* needed) {
      return cl.clGetPlatformInfo(platform, opencl::kPlatformName, n, to, needed);
    });
    for (const Handle device : devices) {
      const auto text = [&](uint32_t what) {
        return text_of([&](size_t n, void* to, size_t* needed) {
          return cl.clGetDeviceInfo(device, what, n, to, needed);
        });
      };
      uint64_t type = 0;
      uint64_t memory = 0;
      uint32_t n_units = 0;
      cl.clGetDeviceInfo(device, opencl::kDeviceType, sizeof(type), &type, nullptr);
      cl.clGetDeviceInfo(device, opencl::kDeviceGlobalMemSize, sizeof(memory), &memory, nullptr);
      cl.clGetDeviceInfo(device, opencl::kDeviceMaxComputeUnits, sizeof(n_units), &n_units,
                         nullptr);
      DeviceInfo info;
      info.api = "opencl";
      info.name = text(opencl::kDeviceName);
      info.driver = platform_name + " " + text(opencl::kDriverVersion);
      info.memory_bytes = memory;
      info.n_units = static_cast<int>(n_units);
      info.is_cpu = (type & opencl::kDeviceTypeCpu) != 0;
      info.options = info.is_cpu ? kCpuOptions : kOptions;
      found.push_back({device, std::move(info)});
    }
  }
  std::stable_partition(found.begin(), found.end(),
                        [](const FoundDevice& d) { return !d.info.is_cpu; });
  for (size_t i = 0; i < found.size(); ++i) found[i].info.index = static_cast<int>(i);
  return found;
}

// ---- one device ---------------------------------------------------------------------------------

// An object of OpenCL, with the function that gives it back.
using Owned = std::unique_ptr<opencl::OpaqueHandle, Status (*)(Handle)>;

class OpenclBuffer final : public Buffer {
 public:
  OpenclBuffer(Owned object, uint64_t n_bytes) : Buffer(n_bytes), object_(std::move(object)) {}
  Handle handle() const { return object_.get(); }

 private:
  Owned object_;
};

Handle handle_of(const Buffer& buffer) { return static_cast<const OpenclBuffer&>(buffer).handle(); }

class OpenclKernel final : public Kernel {
 public:
  OpenclKernel(Owned object, std::string name)
      : Kernel(std::move(name)), object_(std::move(object)) {}
  Handle handle() const { return object_.get(); }

 private:
  Owned object_;
};

class OpenclDevice final : public Device {
 public:
  OpenclDevice(const Functions& cl, const FoundDevice& found)
      : Device(found.info),
        cl_(cl),
        device_(found.handle),
        context_(nullptr, cl.clReleaseContext),
        queue_(nullptr, cl.clReleaseCommandQueue) {
    Status status = 0;
    context_.reset(cl_.clCreateContext(nullptr, 1, &device_, nullptr, nullptr, &status));
    check(status, "clCreateContext");
    queue_.reset(cl_.clCreateCommandQueue(context_.get(), device_, 0, &status));
    check(status, "clCreateCommandQueue");
    cl_.clGetDeviceInfo(device_, opencl::kDeviceMaxMemAllocSize, sizeof(most_buffer_bytes_),
                        &most_buffer_bytes_, nullptr);
  }
  ~OpenclDevice() override { cl_.clFinish(queue_.get()); }

  const Functions& functions() const { return cl_; }

  // Throws with what failed; `what` may name a kernel or a purpose.
  void check(Status status, std::string_view call, std::string_view what = {}) const {
    if (status != 0) fail(call, what, status_name(status), is_out_of_memory(status));
  }

  // OpenCL knows how much there is, not how much is free. A CPU's is the system's.
  uint64_t available_memory() const override {
    const uint64_t of_system = info().is_cpu ? limpid::available_memory() : 0;
    return of_system == 0 ? info().memory_bytes : std::min(of_system, info().memory_bytes);
  }
  // Some drivers allow larger buffers than they say, so the driver decides.
  std::unique_ptr<Buffer> allocate(uint64_t n_bytes, std::string_view purpose) override {
    n_bytes = std::max<uint64_t>(n_bytes, 1);
    Status status = 0;
    Owned object(
        cl_.clCreateBuffer(context_.get(), opencl::kMemReadWrite, n_bytes, nullptr, &status),
        cl_.clReleaseMemObject);
    std::string what = fmt::format("{} bytes for {}", n_bytes, purpose);
    if (n_bytes > most_buffer_bytes_)
      what += fmt::format(" (a buffer of this device has at most {})", most_buffer_bytes_);
    check(status, "clCreateBuffer", what);
    return std::make_unique<OpenclBuffer>(std::move(object), n_bytes);
  }
  void write(const Buffer& to, uint64_t offset, std::span<const std::byte> from) override {
    if (from.empty()) return;
    constexpr uint32_t kWait = 1;
    check(cl_.clEnqueueWriteBuffer(queue_.get(), handle_of(to), kWait, offset, from.size(),
                                   from.data(), 0, nullptr, nullptr),
          "clEnqueueWriteBuffer");
  }
  void read(const Buffer& from, uint64_t offset, std::span<std::byte> to) override {
    if (to.empty()) return;
    constexpr uint32_t kWait = 1;
    check(cl_.clEnqueueReadBuffer(queue_.get(), handle_of(from), kWait, offset, to.size(),
                                  to.data(), 0, nullptr, nullptr),
          "clEnqueueReadBuffer");
  }
  void copy(const Buffer& from, const Buffer& to, uint64_t n_bytes) override {
    if (n_bytes == 0) return;
    check(cl_.clEnqueueCopyBuffer(queue_.get(), handle_of(from), handle_of(to), 0, 0, n_bytes, 0,
                                  nullptr, nullptr),
          "clEnqueueCopyBuffer");
  }
  void zero(const Buffer& buffer, uint64_t offset, uint64_t n_bytes) override {
    if (n_bytes == 0) return;
    const uint8_t pattern = 0;
    check(cl_.clEnqueueFillBuffer(queue_.get(), handle_of(buffer), &pattern, sizeof(pattern),
                                  offset, n_bytes, 0, nullptr, nullptr),
          "clEnqueueFillBuffer");
  }

  std::unique_ptr<Program> compile(const ProgramSource& source) override;
  std::unique_ptr<Program> load(const std::string& binary) override;

  void launch(const Kernel& kernel, const Grid& grid,
              std::span<const Argument> arguments) override {
    if (grid.groups_x == 0 || grid.groups_y == 0) return;
    const Handle handle = static_cast<const OpenclKernel&>(kernel).handle();
    for (size_t i = 0; i < arguments.size(); ++i) {
      const Argument& a = arguments[i];
      const Handle buffer = a.buffer() == nullptr ? nullptr : handle_of(*a.buffer());
      check(cl_.clSetKernelArg(handle, static_cast<uint32_t>(i),
                               a.buffer() == nullptr ? a.n_bytes() : sizeof(Handle),
                               a.buffer() == nullptr ? a.value() : &buffer),
            "clSetKernelArg", kernel.name());
    }
    const std::array<size_t, 2> items = {static_cast<size_t>(grid.groups_x * grid.items),
                                         static_cast<size_t>(grid.groups_y)};
    const std::array<size_t, 2> group = {static_cast<size_t>(grid.items), 1};
    check(cl_.clEnqueueNDRangeKernel(queue_.get(), handle, 2, nullptr, items.data(), group.data(),
                                     0, nullptr, nullptr),
          "clEnqueueNDRangeKernel", kernel.name());
  }
  void flush() noexcept override { cl_.clFlush(queue_.get()); }

 private:
  const char* options() const { return info().options.c_str(); }
  std::string build_log(Handle program) const {
    return text_of([&](size_t n, void* to, size_t* needed) {
      return cl_.clGetProgramBuildInfo(program, device_, opencl::kProgramBuildLog, n, to, needed);
    });
  }

  const Functions& cl_;
  Handle device_;
  Owned context_;
  Owned queue_;  // given back before the context
  uint64_t most_buffer_bytes_ = 0;
};

class OpenclProgram final : public Program {
 public:
  OpenclProgram(const OpenclDevice& device, Handle handle)
      : device_(device),
        cl_(device.functions()),
        object_(handle, device.functions().clReleaseProgram) {}

  std::unique_ptr<Kernel> kernel(const std::string& name) override {
    Status status = 0;
    Owned kernel(cl_.clCreateKernel(object_.get(), name.c_str(), &status), cl_.clReleaseKernel);
    device_.check(status, "clCreateKernel", name);
    return std::make_unique<OpenclKernel>(std::move(kernel), name);
  }

  std::string binary() override {
    size_t size = 0;
    device_.check(cl_.clGetProgramInfo(object_.get(), opencl::kProgramBinarySizes, sizeof(size),
                                       &size, nullptr),
                  "clGetProgramInfo");
    std::string bytes(size, '\0');
    char* to = bytes.data();
    device_.check(
        cl_.clGetProgramInfo(object_.get(), opencl::kProgramBinaries, sizeof(to), &to, nullptr),
        "clGetProgramInfo");
    return bytes;
  }

 private:
  const OpenclDevice& device_;
  const Functions& cl_;
  Owned object_;
};

std::unique_ptr<Program> OpenclDevice::compile(const ProgramSource& source) {
  Status status = 0;
  const char* text = source.text.data();
  const size_t size = source.text.size();
  const Handle handle = cl_.clCreateProgramWithSource(context_.get(), 1, &text, &size, &status);
  check(status, "clCreateProgramWithSource", source.name);
  auto program = std::make_unique<OpenclProgram>(*this, handle);
  const Status built = cl_.clBuildProgram(handle, 1, &device_, options(), nullptr, nullptr);
  LIMPID_CHECK(ResourceError, built == 0,
               "[opencl] {}: the kernels of '{}' do not compile: {}; look for a newer driver, or "
               "use another device. The compiler's log:\n{}",
               info().name, source.name, status_name(built), build_log(handle));
  return program;
}

std::unique_ptr<Program> OpenclDevice::load(const std::string& binary) {
  Status status = 0;
  Status status_of_binary = 0;
  const size_t size = binary.size();
  const auto* bytes = reinterpret_cast<const unsigned char*>(binary.data());
  const Handle handle = cl_.clCreateProgramWithBinary(context_.get(), 1, &device_, &size, &bytes,
                                                      &status_of_binary, &status);
  if (status != 0) return nullptr;
  auto program = std::make_unique<OpenclProgram>(*this, handle);
  if (status_of_binary != 0 ||
      cl_.clBuildProgram(handle, 1, &device_, options(), nullptr, nullptr) != 0)
    return nullptr;
  return program;
}

}  // namespace

DeviceList opencl_devices() {
  DeviceList list;
  const Functions* cl = opencl::functions(list.problem);
  if (cl == nullptr) return list;
  for (FoundDevice& found : find_devices(*cl)) list.devices.push_back(std::move(found.info));
  if (list.devices.empty())
    list.problem =
        "OpenCL has no device; Debian's pocl-opencl-icd, or the GPU's driver, brings one";
  return list;
}

std::unique_ptr<Device> open_opencl_device(int index) {
  std::string problem;
  const Functions* cl = opencl::functions(problem);
  LIMPID_CHECK(ResourceError, cl != nullptr, "[opencl] {}", problem);
  return std::make_unique<OpenclDevice>(*cl, find_devices(*cl).at(static_cast<size_t>(index)));
}

}  // namespace limpid::gpu
