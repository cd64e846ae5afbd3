// What the machine is, and how fast it could be at best.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace limpid::cli {

struct Machine {
  std::string cpu;                    // as the CPU names itself
  int n_cores = 0;                    // this process may use
  std::vector<std::string> features;  // those that matter to kernels
  uint64_t memory_bytes = 0;          // the smaller of the machine's and the control group's limit
  uint64_t available_bytes = 0;
};

// From /proc, sysfs and CPUID; what cannot be read is empty or 0.
Machine look_at_machine();

// Upper limits of a kernel that runs on `n_threads` threads, measured in about a second.
struct MachineLimits {
  int n_threads = 0;
  double read_bytes_per_second = 0;  // summing an array far larger than the caches
  // Independent fused multiply-adds in registers, each counted as two; 0: not measured here.
  double f32_flops_per_second = 0;
};

MachineLimits measure_limits(int n_threads);

}  // namespace limpid::cli
