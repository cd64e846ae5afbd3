#include "executor/gpu/dynamic_library.h"

#include <dlfcn.h>

namespace limpid::gpu {

DynamicLibrary::DynamicLibrary(std::span<const char* const> names) {
  for (const char* name : names) {
    handle_ = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (handle_ != nullptr) return;
    const char* why = ::dlerror();
    if (error_.empty() && why != nullptr) error_ = why;
  }
}

void* DynamicLibrary::symbol(const char* name) const {
  return handle_ == nullptr ? nullptr : ::dlsym(handle_, name);
}

}  // namespace limpid::gpu
