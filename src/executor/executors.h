// How executors are made.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "executor/executor.h"

namespace limpid {

struct ExecutorOptions {
  int n_threads = 0;  // 0: as many as cores this process may use
  std::string isa{};  // "" : LIMPID_ISA of the environment, else the best; see available_isas()
  std::string products = "f32";  // OpenOptions::products; an executor without that type uses f32
};

// Plain loops, f32 storage with f64 sums: the definition of every op.
std::unique_ptr<Executor> make_reference_executor(const ExecutorOptions& options = {});

// SIMD kernels chosen at run time, quantised weights packed once, int8 activations against
// quantised weights.
std::unique_ptr<Executor> make_cpu_executor(const ExecutorOptions& options = {});

// "cpu", "reference", or a device of executor/gpu/gpu_devices.h: "opencl", "cuda", "opencl:1".
// Throws ArgumentError naming the choices, ResourceError for a device that is not there.
std::unique_ptr<Executor> make_executor(std::string_view name, const ExecutorOptions& options = {});

// Wraps an executor in another one that observes it or changes what it does.
using WrapExecutor = std::function<std::unique_ptr<Executor>(std::unique_ptr<Executor>)>;

// Instruction sets compiled in that this CPU has, best first: "avx512vnni", …, "scalar".
std::vector<std::string_view> available_isas();

}  // namespace limpid
