// The machine, and how fast it can be at best.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/output.h"
#include "executor/gpu/gpu_devices.h"
#include "insight/flop_count.h"

namespace limpid::cli {

struct Machine {
  std::string cpu;                    // as the CPU names itself
  int n_cores = 0;                    // this process may use
  std::vector<std::string> features;  // those that matter to kernels
  std::vector<std::string> isas;      // kernels compiled in and possible here, best first
  std::string isa;                    // whose kernels run
  uint64_t memory_bytes = 0;          // the smaller of the machine's and the control group's limit
  uint64_t available_bytes = 0;
  uint64_t cache_bytes = 0;  // third_level_cache()
  // For each GPU API, its devices or the reason why it has none. Only commands that show GPUs fill
  // this in, because that loads drivers.
  std::vector<GpuApi> gpus;
};

// From /proc, sysfs and CPUID; what cannot be read is empty or 0.
Machine look_at_machine();

// Upper limits of a kernel that runs on `n_threads` threads, with the instruction set that is
// chosen (executor/cpu/isa.h).
struct MachineLimits {
  int n_threads = 0;
  // Summing an array far larger than the caches, in huge pages where the system gives them.
  double read_bytes_per_second = 0;
  // On registers, a multiplication and an addition counted as two.
  FlopCount flops_per_second;

  // Whether products of bf16 have a limit of their own. Otherwise theirs is that of f32.
  [[nodiscard]] bool has_bf16() const { return flops_per_second.bf16 != flops_per_second.f32; }
};

// Measures them in about a second. `n_threads` below 1 means as many as cores this process may use;
// so it does in the two functions that follow. Matrices of bf16 are multiplied as `products` says
// (OpenOptions::products), and have the limit of f32 unless that is "bf16". Throws ResourceError
// without memory for the array.
MachineLimits measure_limits(int n_threads, std::string_view products);
// MachineLimits::read_bytes_per_second alone, in half a second.
double measure_read_limit(int n_threads);
// MachineLimits::flops_per_second.f32 alone, in a tenth of a second.
double measure_f32_limit(int n_threads);
// "28.2 GB/s read, 410 GFLOP/s f32, 1620 GOP/s int8", with bf16 if it is not that of f32.
std::string rates_text(const MachineLimits& limits);
// "limits measured: 28.2 GB/s read, …", or that they were not.
std::string limits_text(const MachineLimits& limits);

// What `limpid devices` and `limpid doctor` print: lines of a label and what belongs to it, or the
// same as JSON. Limits with n_threads 0 were not measured, and are not printed.
std::string machine_text(const Machine& machine, const MachineLimits& limits);
Json machine_json(const Machine& machine, const MachineLimits& limits);

}  // namespace limpid::cli
