// The double of NVRTC. "Machine code" is the text of a program behind a line with its name.
#include <algorithm>
#include <cstring>

#include "executor/cuda_double/driver.h"
#include "executor/gpu/program_cache.h"
#include "limpid/error.hpp"

// NOLINTNEXTLINE(readability-identifier-naming): the driver's name
extern "C" cuda_double::Status cuInit(unsigned flags);

namespace cuda_double {
namespace {

std::string image_of(const NvrtcProgram& program) {
  return kMagic + program.name + "\n" + program.text;
}

}  // namespace

// The names are the library's. NOLINTBEGIN(readability-identifier-naming)
extern "C" {

const char* nvrtcGetErrorString(Status status) {
  return status == kCompilation ? "NVRTC_ERROR_COMPILATION" : "NVRTC_ERROR";
}
Status nvrtcVersion(int* major, int* minor) {
  *major = 13;
  *minor = 0;
  return kOk;
}
Status nvrtcCreateProgram(void** program, const char* text, const char* name, int n_headers,
                          const char* const* /*headers*/, const char* const* /*names*/) {
  if (n_headers != 0) return kInvalidValue;
  auto* made = new NvrtcProgram{name, text, "", false};
  driver().programs.insert(made);
  *program = made;
  return kOk;
}
Status nvrtcCompileProgram(NvrtcProgram* program, int n_options, const char* const* options) {
  bool has_architecture = false;
  for (int i = 0; i < n_options; ++i) {
    if (std::strcmp(options[i], "-arch=sm_100") == 0) has_architecture = true;
  }
  if (!has_architecture || cuInit(0) != kOk) return kInvalidValue;
  try {
    limpid::gpu::cached_program(*driver().device, {program->name, program->text});
  } catch (const limpid::Error& error) {
    program->log = error.what();
    return kCompilation;
  }
  program->is_compiled = true;
  return kOk;
}
Status nvrtcDestroyProgram(NvrtcProgram** program) {
  if (driver().programs.erase(*program) != 1) return kInvalidValue;
  delete *program;
  *program = nullptr;
  return kOk;
}
Status nvrtcGetCUBINSize(const NvrtcProgram* program, size_t* size) {
  *size = image_of(*program).size();
  return program->is_compiled ? kOk : kInvalidValue;
}
Status nvrtcGetCUBIN(const NvrtcProgram* program, char* to) {
  const std::string image = image_of(*program);
  std::ranges::copy(image, to);
  return program->is_compiled ? kOk : kInvalidValue;
}
Status nvrtcGetProgramLogSize(const NvrtcProgram* program, size_t* size) {
  *size = program->log.size() + 1;
  return kOk;
}
Status nvrtcGetProgramLog(const NvrtcProgram* program, char* to) {
  std::memcpy(to, program->log.c_str(), program->log.size() + 1);
  return kOk;
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming)

}  // namespace cuda_double
