// Compiled programs, kept in files: the first start compiles for seconds, later ones load.
#pragma once

#include <memory>

#include "executor/gpu/gpu_api.h"

namespace limpid::gpu {

// The program from the folder `gpu` of the cache. If it is not there yet or its file is damaged, or
// the device no longer accepts it, it is compiled and written there. The name of the file contains
// the SHA-256 of everything that the program depends on: the API, the device, its driver and the
// text. It is not an error if the folder cannot be written to; the program is then compiled at
// every start.
std::unique_ptr<Program> cached_program(Device& device, const ProgramSource& source);
// Whether cached_program would compile the program and keep it.
bool is_new_to_cache(const DeviceInfo& info, const ProgramSource& source);

}  // namespace limpid::gpu
