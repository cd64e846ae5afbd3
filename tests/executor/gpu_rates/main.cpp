// What a device can do at most, for tools/gpu-check to hold decoding and prompts against. Prints
// two numbers: bytes read and written per second when it copies within its own memory, and
// operations per second when its tensor cores multiply fragments that lie in registers. The best of
// several times each. On OpenCL, which emulates tensor cores, the second one says nothing.
//
//   gpu_rates DEVICE [MIB]
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <exception>
#include <string>

#include "executor/gpu/gpu_api.h"
#include "executor/gpu/kernel_sources.h"

namespace limpid {
namespace {

int number_after(const std::string& text, char mark, int otherwise) {
  const size_t at = text.find(mark);
  if (at != std::string::npos)
    std::from_chars(text.data() + at + 1, text.data() + text.size(), otherwise);
  return otherwise;
}

// The seconds that `work` takes on the device; a read of one byte waits for its end.
template <class Work>
double seconds_of(gpu::Device& device, const gpu::Buffer& buffer, Work work) {
  std::byte last{};
  device.read(buffer, 0, {&last, 1});
  const auto begin = std::chrono::steady_clock::now();
  work();
  device.read(buffer, 0, {&last, 1});
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

double copy_rate(gpu::Device& device, uint64_t n_bytes) {
  constexpr int kTimes = 10;
  constexpr int kCopies = 8;  // between two looks at the clock
  const auto from = device.allocate(n_bytes, "copies");
  const auto to = device.allocate(n_bytes, "copies");
  device.zero(*from, 0, n_bytes);
  double best = 0;
  for (int i = 0; i < kTimes; ++i) {
    const double seconds = seconds_of(device, *to, [&] {
      for (int j = 0; j < kCopies; ++j) device.copy(*from, *to, n_bytes);
    });
    best = std::max(best, 2.0 * kCopies * static_cast<double>(n_bytes) / seconds);
  }
  return best;
}

// Eight sums for each warp, so that a product does not wait for the one before.
constexpr const char* kRateKernel = R"(
KERNEL(256) tensor_rate(GLOBAL float* y, int n) {
  MEETING(meeting);
  uint a[4];
  uint b[2];
  float c[8][4];
  UNROLL for (int i = 0; i < 4; ++i) a[i] = pair_of_floats(1.0f + ITEM_OF_GROUP() * i, -1.0f);
  UNROLL for (int i = 0; i < 2; ++i) b[i] = pair_of_floats(0.5f, 0.25f * i);
  for (int j = 0; j < 8; ++j) {
    UNROLL for (int i = 0; i < 4; ++i) c[j][i] = 0;
  }
  for (int k = 0; k < n; ++k) {
    UNROLL_FRAGMENTS for (int j = 0; j < 8; ++j)
        multiply_fragments(a, b, c[j], MEETING_OF(meeting));
  }
  float sum = 0;
  for (int j = 0; j < 8; ++j) {
    UNROLL for (int i = 0; i < 4; ++i) sum += c[j][i];
  }
  y[ITEM()] = sum;
}
)";

double tensor_rate(gpu::Device& device) {
  constexpr int kTimes = 10;
  constexpr int kItems = 256;
  constexpr double kOfFragment = 2.0 * 16 * 16 * 8;
  gpu::ProgramSource source = gpu::tensor_program(DType::kF16);
  source.name = "tensor_rate";
  source.text += kRateKernel;
  const auto program = device.compile(source);
  const auto kernel = program->kernel("tensor_rate");
  const bool is_cuda = device.info().api == "cuda";
  const int64_t n_groups = is_cuda ? 8 * device.info().n_units : 1;
  const int n = is_cuda ? 4096 : 4;
  const auto sums =
      device.allocate(static_cast<uint64_t>(n_groups) * kItems * sizeof(float), "sums");
  const gpu::Argument arguments[] = {*sums, n};
  double best = 0;
  for (int i = 0; i < kTimes; ++i) {
    const double seconds = seconds_of(device, *sums, [&] {
      device.launch(*kernel, {n_groups, 1, kItems}, arguments);
    });
    best = std::max(best, static_cast<double>(n_groups) * 8 * n * 8 * kOfFragment / seconds);
  }
  return best;
}

}  // namespace
}  // namespace limpid

int main(int argc, char** argv) {
  try {
    const std::string name = argc > 1 ? argv[1] : "cuda";
    const int index = limpid::number_after(name, ':', 0);
    const auto device = name.starts_with("cuda") ? limpid::gpu::open_cuda_device(index)
                                                 : limpid::gpu::open_opencl_device(index);
    const uint64_t mib = argc > 2 ? std::stoull(argv[2]) : 1024;
    std::printf("%.0f ", limpid::copy_rate(*device, mib << 20));
    std::printf("%.0f\n", limpid::tensor_rate(*device));
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}
