#include "executor/kernel_counts/counting_device.h"

#include <ucontext.h>

#include <algorithm>
#include <exception>
#include <set>

#include "executor/kernel_counts/words.h"
#include "limpid/error.hpp"

namespace limpid::counts {
namespace {

auto& mutable_programs() {
  static std::map<std::string, std::map<std::string, Runner>> all;
  return all;
}

class CountedBuffer final : public gpu::Buffer {
 public:
  CountedBuffer(uint64_t n_bytes, std::string_view purpose)
      : Buffer(n_bytes), memory(n_bytes), purpose(purpose) {}
  mutable Memory memory;
  std::string purpose;
};

const CountedBuffer& counted(const gpu::Buffer& buffer) {
  return static_cast<const CountedBuffer&>(buffer);
}

class CountedKernel final : public gpu::Kernel {
 public:
  CountedKernel(std::string name, const Runner& runner) : Kernel(std::move(name)), runner(runner) {}
  const Runner& runner;
};

class CountedProgram final : public gpu::Program {
 public:
  explicit CountedProgram(const std::map<std::string, Runner>& kernels) : kernels_(kernels) {}
  std::unique_ptr<gpu::Kernel> kernel(const std::string& name) override {
    return std::make_unique<CountedKernel>(name, kernels_.at(name));
  }
  std::string binary() override { return "counts"; }

 private:
  const std::map<std::string, Runner>& kernels_;
};

// ---- the items of a group -----------------------------------------------------------------------

// Each item has a stack of its own, and runs until it waits for the others or ends.
class Group {
 public:
  void run(int n_items, const std::function<void()>& body) {
    constexpr size_t kStackBytes = size_t{64} << 10;
    body_ = &body;
    const auto n = static_cast<size_t>(n_items);
    numbers_.resize(n);
    contexts_.resize(n);
    is_done_.assign(n, false);
    while (stacks_.size() < n) stacks_.push_back(std::make_unique<char[]>(kStackBytes));
    for (size_t i = 0; i < n; ++i) {
      getcontext(&contexts_[i]);
      contexts_[i].uc_stack.ss_sp = stacks_[i].get();
      contexts_[i].uc_stack.ss_size = kStackBytes;
      contexts_[i].uc_link = &scheduler_;
      makecontext(
          &contexts_[i], [] { the_group().run_item(); }, 0);
    }
    // In one group the first item is ahead, in the next the last: what depends on that lacks a
    // barrier.
    const bool is_reversed = now().group % 2 == 1;
    do {
      for (size_t at = 0; at < n; ++at) {
        const size_t i = is_reversed ? n - 1 - at : at;
        now().item = static_cast<int>(i);
        swapcontext(&scheduler_, &contexts_[i]);
        if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
        if (is_done_[i] != is_done_[is_reversed ? n - 1 : 0])
          throw std::logic_error("items of a group wait at different barriers");
      }
    } while (!is_done_[0]);
  }
  void wait() {
    const int item = now().item;
    swapcontext(&contexts_[static_cast<size_t>(item)], &scheduler_);
  }
  float number(float x, int of) {
    numbers_[static_cast<size_t>(now().item)] = x;
    wait();
    const float y = numbers_[static_cast<size_t>(of)];
    wait();
    return y;
  }
  static Group& the_group() {
    static Group group;
    return group;
  }

 private:
  void run_item() {
    try {
      (*body_)();
    } catch (...) {
      error_ = std::current_exception();
    }
    is_done_[static_cast<size_t>(now().item)] = true;
  }

  const std::function<void()>* body_ = nullptr;
  ucontext_t scheduler_{};
  std::vector<ucontext_t> contexts_;
  std::vector<std::unique_ptr<char[]>> stacks_;
  std::vector<bool> is_done_;
  std::vector<float> numbers_;
  std::exception_ptr error_;
};

gpu::DeviceInfo description() {
  gpu::DeviceInfo info;
  info.api = "counts";
  info.name = "a device that counts";
  info.n_units = 132;  // as an H100 has
  return info;
}

}  // namespace

Entry::Entry(const std::string& program, std::map<std::string, Runner> kernels) {
  mutable_programs()[program] = std::move(kernels);
}
const std::map<std::string, std::map<std::string, Runner>>& programs() {
  return mutable_programs();
}
Memory& memory_of(const gpu::Buffer& buffer) { return counted(buffer).memory; }
void wait_for_group() { Group::the_group().wait(); }
float number_of_item(float x, int item) { return Group::the_group().number(x, item); }

CountingDevice::CountingDevice() : Device(description()) {}

std::unique_ptr<gpu::Buffer> CountingDevice::allocate(uint64_t n_bytes, std::string_view purpose) {
  return std::make_unique<CountedBuffer>(n_bytes, purpose);
}
void CountingDevice::write(const gpu::Buffer& to, uint64_t offset,
                           std::span<const std::byte> from) {
  std::ranges::copy(from, counted(to).memory.data() + offset);
}
void CountingDevice::read(const gpu::Buffer& from, uint64_t offset, std::span<std::byte> to) {
  std::copy_n(counted(from).memory.data() + offset, to.size(), to.begin());
}
void CountingDevice::copy(const gpu::Buffer& from, const gpu::Buffer& to, uint64_t n_bytes) {
  std::copy_n(counted(from).memory.data(), n_bytes, counted(to).memory.data());
}
void CountingDevice::zero(const gpu::Buffer& buffer, uint64_t offset, uint64_t n_bytes) {
  std::fill_n(counted(buffer).memory.data() + offset, n_bytes, std::byte{0});
}
std::unique_ptr<gpu::Program> CountingDevice::compile(const gpu::ProgramSource& source) {
  const auto found = programs().find(source.name);
  if (found == programs().end())
    throw ResourceError("[counts] the program '" + source.name + "' was not built");
  return std::make_unique<CountedProgram>(found->second);
}
std::unique_ptr<gpu::Program> CountingDevice::load(const std::string& /*binary*/) {
  return nullptr;
}

void CountingDevice::launch(const gpu::Kernel& kernel, const gpu::Grid& grid,
                            std::span<const gpu::Argument> arguments) {
  const Runner& runner = static_cast<const CountedKernel&>(kernel).runner;
  if (grid.items != runner.n_items) throw std::logic_error(kernel.name() + ": items of a group");
  std::set<const CountedBuffer*> buffers;
  for (const gpu::Argument& a : arguments)
    if (a.buffer() != nullptr) buffers.insert(&counted(*a.buffer()));
  now().n_fused = now().n_exp = 0;
  now().n_items = grid.items;
  now().groups_x = static_cast<int>(grid.groups_x);
  for (now().group_y = 0; now().group_y < grid.groups_y; ++now().group_y) {
    for (now().group_x = 0; now().group_x < grid.groups_x; ++now().group_x) {
      now().begin_group();
      try {
        Group::the_group().run(grid.items, [&] { runner.run(arguments); });
      } catch (const std::exception& error) {
        throw std::logic_error(kernel.name() + ": " + error.what());
      }
    }
  }
  Launch launch{kernel.name(), grid.groups_x * grid.groups_y, {}, now().n_fused, now().n_exp};
  for (const CountedBuffer* buffer : buffers) {
    const Traffic traffic = buffer->memory.take_traffic();
    Traffic& sum = launch.traffic[buffer->purpose];
    sum.bytes += traffic.bytes;
    sum.of_groups += traffic.of_groups;
    sum.asked += traffic.asked;
  }
  launches_.push_back(std::move(launch));
}

}  // namespace limpid::counts
