// A device that runs kernels on the host and counts what they read. The GPU executor drives it like
// any other, so the launches that are counted are its own.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "executor/gpu/gpu_api.h"
#include "executor/kernel_counts/memory.h"

namespace limpid::counts {

// One launch.
struct Launch {
  std::string kernel;
  int64_t n_groups;
  std::map<std::string, Traffic> traffic;  // by the purpose that a buffer was allocated for
  uint64_t n_fused;
  uint64_t n_exp;
};

class CountingDevice final : public gpu::Device {
 public:
  CountingDevice();

  // What was launched since the last call.
  std::vector<Launch> take_launches() { return std::exchange(launches_, {}); }

  uint64_t available_memory() const override { return uint64_t{1} << 32; }
  std::unique_ptr<gpu::Buffer> allocate(uint64_t n_bytes, std::string_view purpose) override;
  void write(const gpu::Buffer& to, uint64_t offset, std::span<const std::byte> from) override;
  void read(const gpu::Buffer& from, uint64_t offset, std::span<std::byte> to) override;
  void copy(const gpu::Buffer& from, const gpu::Buffer& to, uint64_t n_bytes) override;
  void zero(const gpu::Buffer& buffer, uint64_t offset, uint64_t n_bytes) override;
  std::unique_ptr<gpu::Program> compile(const gpu::ProgramSource& source) override;
  std::unique_ptr<gpu::Program> load(const std::string& binary) override;
  void launch(const gpu::Kernel& kernel, const gpu::Grid& grid,
              std::span<const gpu::Argument> arguments) override;
  void flush() noexcept override {}

 private:
  std::vector<Launch> launches_;
};

}  // namespace limpid::counts
