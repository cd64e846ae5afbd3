#include "executor/cuda_double/driver.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "limpid/error.hpp"

namespace cuda_double {

using limpid::gpu::Argument;

Driver::~Driver() {
  if (buffers.empty() && modules.empty() && streams.empty() && programs.empty() && graphs.empty() &&
      graph_execs.empty() && n_contexts == 0)
    return;
  std::fprintf(stderr,
               "cuda double: %zu buffers, %zu modules, %zu streams, %zu graphs, %zu programs and "
               "%d contexts were not released\n",
               buffers.size(), modules.size(), streams.size(), graphs.size() + graph_execs.size(),
               programs.size(), n_contexts);
  std::fflush(nullptr);
  ::_exit(3);
}

Driver& driver() {
  static Driver the_driver;
  return the_driver;
}

bool& is_current() {
  thread_local bool is = false;
  return is;
}

std::pair<limpid::gpu::Buffer*, uint64_t> find(Address address, uint64_t n) {
  auto after = driver().buffers.upper_bound(address);
  if (after == driver().buffers.begin()) return {nullptr, 0};
  const auto& [begin, buffer] = *--after;
  const uint64_t offset = address - begin;
  if (offset > buffer->n_bytes() || n > buffer->n_bytes() - offset) return {nullptr, 0};
  return {buffer.get(), offset};
}

bool is_to_fail(std::string_view call) {
  if (driver().fails != call) return false;
  driver().fails.clear();
  return true;
}

Stream* find_stream(void* handle) { return find_in(driver().streams, handle); }

bool disturbs_capture() {
  bool disturbs = false;
  for (const auto& stream : driver().streams) {
    if (!stream->captures) continue;
    stream->is_disturbed = disturbs = true;
  }
  return disturbs;
}

Status run_waiting(Stream& stream) {
  try {
    for (const auto& task : stream.waiting) task();
  } catch (const limpid::Error& error) {
    std::fprintf(stderr, "cuda double: %s\n", error.what());
    driver().failure = kLaunchFailed;
  }
  stream.waiting.clear();
  return driver().failure;
}

Status enqueue(void* stream, std::function<void()> task) {
  if (!is_current()) return kInvalidContext;
  Stream* found = find_stream(stream);
  if (found == nullptr) return kInvalidValue;
  if (found->captures) {
    found->is_disturbed = true;
    return kCaptureUnsupported;
  }
  found->waiting.push_back(std::move(task));
  return driver().failure;
}

Status enqueue_launch(void* stream, const LaunchRecord& record) {
  const bool is_there = std::ranges::any_of(driver().modules, [&](const auto& module) {
    return std::ranges::any_of(
        module->functions, [&](const auto& each) { return each.second.get() == record.function; });
  });
  if (!is_there) return kInvalidValue;
  std::vector<Argument> arguments;
  for (const auto& argument : record.arguments) {
    if (const Address* address = std::get_if<Address>(&argument)) {
      const auto [buffer, offset] = find(*address, 1);
      if (buffer == nullptr || offset != 0) return kInvalidValue;
      arguments.emplace_back(*buffer);
    } else if (const int32_t* number = std::get_if<int32_t>(&argument)) {
      arguments.emplace_back(*number);
    } else if (const int64_t* wide = std::get_if<int64_t>(&argument)) {
      arguments.emplace_back(*wide);
    } else {
      arguments.emplace_back(std::get<float>(argument));
    }
  }
  return enqueue(stream, [record, arguments = std::move(arguments)] {
    driver().device->launch(
        *record.function->kernel,
        {record.groups_x, record.groups_y, static_cast<int>(record.function->n_items)}, arguments);
  });
}

}  // namespace cuda_double
