// Compiled programs, kept in files: the first start compiles for seconds, later ones load.
#pragma once

#include <memory>

#include "executor/gpu/gpu_api.h"

namespace limpid::gpu {

// The program from the folder `gpu` of the cache; compiled, and put there, when it is not there yet
// or the device does not take it any more. A file is named by the SHA-256 of all that it follows
// from: the API, the device, its driver and the text. A folder that cannot be written to costs
// time; it is not an error.
std::unique_ptr<Program> cached_program(Device& device, const ProgramSource& source);

}  // namespace limpid::gpu
