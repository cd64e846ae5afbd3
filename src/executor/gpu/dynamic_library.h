// A shared library that is loaded when it is needed, and may be absent.
#pragma once

#include <span>
#include <string>

namespace limpid::gpu {

class DynamicLibrary {
 public:
  // Loads the first of these names that the system's loader finds; if it finds none, error() says
  // why. A library stays loaded until the process ends, because drivers start threads that run its
  // code.
  explicit DynamicLibrary(std::span<const char* const> names);

  explicit operator bool() const { return handle_ != nullptr; }
  const std::string& error() const { return error_; }
  // Null for one that the library lacks.
  void* symbol(const char* name) const;

 private:
  void* handle_ = nullptr;
  std::string error_;
};

// The functions of a library, or why they cannot be used.
template <class Functions>
struct LoadedFunctions {
  Functions functions{};
  std::string problem;  // empty when all are there

  // Null if they cannot be used; `why_not` is then the problem.
  const Functions* get(std::string& why_not) const {
    why_not = problem;
    return problem.empty() ? &functions : nullptr;
  }
};

// The parts of the messages "`what` is not installed (…)`source`" and "`what` lacks …`remedy`".
struct LibraryWords {
  std::string what;
  std::string source;
  std::string remedy;
};

// `find_all(functions, find)` calls find(name, functions.member) for each function.
template <class Functions, class FindAll>
LoadedFunctions<Functions> load_functions(std::span<const char* const> names,
                                          const LibraryWords& words, FindAll find_all) {
  LoadedFunctions<Functions> loaded;
  const DynamicLibrary library(names);
  const char* missing = nullptr;
  find_all(loaded.functions, [&]<class Function>(const char* name, Function*& function) {
    function = reinterpret_cast<Function*>(library.symbol(name));
    if (function == nullptr) missing = name;
  });
  if (!library) {
    loaded.problem = words.what + " is not installed (" + library.error() + ")" + words.source;
  } else if (missing != nullptr) {
    loaded.problem = words.what + " lacks " + missing + words.remedy;
  }
  return loaded;
}

}  // namespace limpid::gpu
