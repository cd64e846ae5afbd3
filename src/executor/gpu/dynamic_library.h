// A shared library that is loaded when it is needed, and may be absent.
#pragma once

#include <span>
#include <string>
#include <utility>

namespace limpid::gpu {

class DynamicLibrary {
 public:
  // Loads the first of these names that the system's loader finds; if it finds none, error() says
  // why. A library stays loaded until the process ends, because drivers start threads that run its
  // code.
  explicit DynamicLibrary(std::span<const char* const> names);

  explicit operator bool() const { return handle_ != nullptr; }
  const std::string& error() const { return error_; }
  // Sets `function` to the symbol, or to null. Returns whether the library has it.
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

// `find_all(library, functions)` fills the functions in, and returns the name of one that the
// library lacks, or null.
template <class Functions, class FindAll>
LoadedFunctions<Functions> load_functions(std::span<const char* const> names,
                                          const LibraryWords& words, FindAll find_all) {
  LoadedFunctions<Functions> loaded;
  const DynamicLibrary library(names);
  if (!library) {
    loaded.problem = words.what + " is not installed (" + library.error() + ")" + words.source;
  } else if (const char* missing = find_all(library, loaded.functions)) {
    loaded.problem = words.what + " lacks " + missing + words.remedy;
  }
  return loaded;
}

}  // namespace limpid::gpu
