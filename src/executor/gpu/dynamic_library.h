// Functions of a shared library that is loaded when it is needed, and may be absent.
#pragma once

#include <dlfcn.h>

#include <span>
#include <string>

namespace limpid::gpu {

// Loads the first of these names that the system's loader finds; if it finds none: null, and `why`.
// A library stays loaded until the process ends, because drivers start threads that run its code.
inline void* open_library(std::span<const char* const> names, std::string& why) {
  for (const char* name : names) {
    if (void* library = ::dlopen(name, RTLD_NOW | RTLD_LOCAL)) return library;
    const char* error = ::dlerror();
    if (why.empty() && error != nullptr) why = error;
  }
  return nullptr;
}

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
  std::string why;
  void* library = open_library(names, why);
  if (library == nullptr) {
    loaded.problem = words.what + " is not installed (" + why + ")" + words.source;
    return loaded;
  }
  find_all(loaded.functions, [&]<class Function>(const char* name, Function*& function) {
    function = reinterpret_cast<Function*>(::dlsym(library, name));
    if (function == nullptr) loaded.problem = words.what + " lacks " + name + words.remedy;
  });
  return loaded;
}

}  // namespace limpid::gpu
