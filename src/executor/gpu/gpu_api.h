// The interface between the GPU executor and a device: memory, copies, programs and launches, all
// in one queue that runs in order. opencl_api.cpp and cuda_api.cpp implement it. Both load the
// driver's library when a device is first used, so Limpid is built, and runs, on machines without
// any GPU package.
//
// Errors of a driver become ResourceError. The message names the API, the device, the call and, if
// there is one, the kernel, and says what the user can do.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace limpid::gpu {

struct DeviceInfo {
  std::string api;           // "opencl" or "cuda"
  int index = 0;             // counts the devices of an API
  std::string name;          // as the driver gives it
  std::string driver;        // its version, and the platform's name
  std::string architecture;  // "sm_89"; "" for OpenCL
  std::string options;       // of the compiler of kernels
  uint64_t memory_bytes = 0;
  int n_units = 0;         // compute units, multiprocessors
  bool is_cpu = false;     // OpenCL on the CPU, as PoCL provides it
  bool has_wgmma = false;  // CUDA's instructions for four warps, of "sm_90a"
};

// Memory of a device. The host can read it only through Device::read.
class Buffer {
 public:
  virtual ~Buffer() = default;
  uint64_t n_bytes() const { return n_bytes_; }

 protected:
  explicit Buffer(uint64_t n_bytes) : n_bytes_(n_bytes) {}

 private:
  uint64_t n_bytes_;
};

// A function of a program that a device can launch.
class Kernel {
 public:
  virtual ~Kernel() = default;
  const std::string& name() const { return name_; }

 protected:
  explicit Kernel(std::string name) : name_(std::move(name)) {}

 private:
  std::string name_;
};

// A text to compile, in the dialect of kernels/dialect.h.
struct ProgramSource {
  std::string name;  // for messages
  std::string text;
};

// Compiled kernels. Must live as long as its kernels are used.
class Program {
 public:
  virtual ~Program() = default;
  // Throws ResourceError if the program has no kernel of that name.
  virtual std::unique_ptr<Kernel> kernel(const std::string& name) = 0;
  // The argument of Device::load.
  virtual std::string binary() = 0;
};

// A parameter of a launch: a buffer or a number.
class Argument {
 public:
  Argument(const Buffer& buffer) : buffer_(&buffer) {}  // NOLINT(google-explicit-constructor)
  // int, wide and float of the dialect.
  template <class Number>
  requires(std::is_same_v<Number, int32_t> || std::is_same_v<Number, int64_t> ||
           std::is_same_v<Number, float>) Argument(Number value)
      : n_bytes_(sizeof(value)) {  // NOLINT(google-explicit-constructor)
    std::memcpy(value_, &value, sizeof(value));
  }
  const Buffer* buffer() const { return buffer_; }
  const void* value() const { return value_; }
  size_t n_bytes() const { return n_bytes_; }  // of the number

 private:
  const Buffer* buffer_ = nullptr;
  alignas(8) std::byte value_[8] = {};
  size_t n_bytes_ = 0;
};

// How many groups, and how many items each has, which is a constant of the kernel.
struct Grid {
  int64_t groups_x = 1;
  int64_t groups_y = 1;  // at most 65,535
  int items = 1;
  int local_bytes = 0;  // of the kernel's LARGE_LOCAL_ARRAY (kernels/dialect.h)
  bool operator==(const Grid&) const = default;
};

// One device with one queue: what is called later happens later. For one thread at a time, but not
// always the same one.
class Device {
 public:
  virtual ~Device() = default;
  const DeviceInfo& info() const { return info_; }

  // Free bytes, or the nearest number that the API reports.
  virtual uint64_t available_memory() const = 0;
  // Memory with arbitrary content, of a byte at least: drivers refuse less. `purpose` names it in
  // the error.
  virtual std::unique_ptr<Buffer> allocate(uint64_t n_bytes, std::string_view purpose) = 0;
  // Copies from the host. `from` may be used again when it returns.
  virtual void write(const Buffer& to, uint64_t offset, std::span<const std::byte> from) = 0;
  // Copies to the host, after everything that was launched before.
  virtual void read(const Buffer& from, uint64_t offset, std::span<std::byte> to) = 0;
  virtual void copy(const Buffer& from, const Buffer& to, uint64_t n_bytes) = 0;
  virtual void zero(const Buffer& buffer, uint64_t offset, uint64_t n_bytes) = 0;

  // If the program does not compile, the error contains the compiler's log.
  virtual std::unique_ptr<Program> compile(const ProgramSource& source) = 0;
  // Null if the device does not accept the binary.
  virtual std::unique_ptr<Program> load(const std::string& binary) = 0;
  // A grid without groups does nothing.
  virtual void launch(const Kernel& kernel, const Grid& grid,
                      std::span<const Argument> arguments) = 0;
  // The launches between these two calls probably repeat those of an earlier step. The device may
  // hold them back until end_graph or another call, and then run them as one. Their buffers must
  // live until then. Everything that changes from step to step should be in the buffers, whose
  // content does not matter here. An error of a launch may be thrown by a later call, but not by
  // end_graph.
  virtual void begin_graph() {}
  virtual void end_graph() noexcept {}
  // Lets the device begin to run what was launched.
  virtual void flush() noexcept = 0;

 protected:
  explicit Device(DeviceInfo info) : info_(std::move(info)) {}

  // Throws the ResourceError of a call that failed with `status`, in words; `what` is a kernel or a
  // purpose, or "".
  [[noreturn]] void fail(std::string_view call, std::string_view what, std::string_view status,
                         bool is_out_of_memory) const;

 private:
  DeviceInfo info_;
};

// The devices that an API finds on this machine. If there are none, `problem` says why.
struct DeviceList {
  std::vector<DeviceInfo> devices;
  std::string problem;
};

// OpenCL 1.2 and later: the devices of all platforms, GPUs of all vendors before CPUs (through
// PoCL). CUDA: NVIDIA's GPUs; nvrtc.h compiles the kernels. Never throw because of a driver.
DeviceList opencl_devices();
DeviceList cuda_devices();

// `index` is that of a device in the list. Throw ResourceError when the driver refuses.
std::unique_ptr<Device> open_opencl_device(int index);
std::unique_ptr<Device> open_cuda_device(int index);

}  // namespace limpid::gpu
