// NVRTC: kernels of the dialect to machine code of NVIDIA's GPUs. It needs no GPU and no driver.
#pragma once

#include <array>
#include <string>

#include "executor/gpu/gpu_api.h"

namespace limpid::gpu {

// Products and sums are fused where the text says so. A program holds more functions than it uses.
inline constexpr std::array kNvrtcOptions = {"-fmad=false", "-diag-suppress=177"};

// "" when NVRTC can be used here, else why not.
std::string nvrtc_problem();

// Machine code for an architecture such as "sm_90a". `device` names the device in errors. `log`, if
// not null, gets the compiler's log with the registers and spills of each kernel. Throws
// ResourceError: without NVRTC, and with the log for a text that does not compile.
std::string compile_to_cubin(const ProgramSource& source, const std::string& architecture,
                             const std::string& device, std::string* log = nullptr);

}  // namespace limpid::gpu
