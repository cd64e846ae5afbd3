// A shared library that is loaded when it is needed, and may be absent.
#pragma once

#include <span>
#include <string>
#include <utility>

namespace limpid::gpu {

class DynamicLibrary {
 public:
  // The first of these names that the system's loader finds; else error() says why not. A library
  // stays loaded until the process ends: drivers start threads, which must not lose their code.
  explicit DynamicLibrary(std::span<const char* const> names);

  explicit operator bool() const { return handle_ != nullptr; }
  const std::string& error() const { return error_; }
  // Sets `function` to the symbol, or to null. Whether it is there.
  template <class Function>
  bool find(const char* name, Function*& function) const {
    function = reinterpret_cast<Function*>(symbol(name));
    return function != nullptr;
  }

 private:
  void* symbol(const char* name) const;

  void* handle_ = nullptr;
  std::string error_;
};

}  // namespace limpid::gpu
