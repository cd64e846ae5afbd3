// How fast a device copies within its own memory, in bytes read and written per second: the best of
// several times. tools/gpu-check holds decoding against it.
//
//   gpu_copies DEVICE [MIB]
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <exception>
#include <string>

#include "executor/gpu/cuda_api.h"
#include "executor/gpu/opencl_api.h"

namespace {

int number_after(const std::string& text, char mark, int otherwise) {
  const size_t at = text.find(mark);
  if (at != std::string::npos)
    std::from_chars(text.data() + at + 1, text.data() + text.size(), otherwise);
  return otherwise;
}

double best_rate(limpid::gpu::Device& device, uint64_t n_bytes) {
  constexpr int kTimes = 10;
  constexpr int kCopies = 8;  // between two looks at the clock
  const auto from = device.allocate(n_bytes, "copies");
  const auto to = device.allocate(n_bytes, "copies");
  device.zero(*from, 0, n_bytes);
  std::byte last{};
  double best = 0;
  for (int i = 0; i < kTimes; ++i) {
    device.read(*to, n_bytes - 1, {&last, 1});  // waits
    const auto begin = std::chrono::steady_clock::now();
    for (int j = 0; j < kCopies; ++j) device.copy(*from, *to, n_bytes);
    device.read(*to, n_bytes - 1, {&last, 1});
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    best = std::max(best, 2.0 * kCopies * static_cast<double>(n_bytes) / seconds.count());
  }
  return best;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const std::string name = argc > 1 ? argv[1] : "cuda";
    const int index = number_after(name, ':', 0);
    const auto device = name.starts_with("cuda") ? limpid::gpu::open_cuda_device(index)
                                                 : limpid::gpu::open_opencl_device(index);
    const uint64_t mib = argc > 2 ? std::stoull(argv[2]) : 1024;
    std::printf("%.0f\n", best_rate(*device, mib << 20));
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}
