// Writes the GPU kernels of a program as C++ that counts: generate PROGRAM FILE.
//
// The text is the one that drivers compile, with two changes: a pointer into the device's memory,
// `GLOBAL const float*`, becomes `Global<const float>` (memory.h), and each kernel is entered into
// a table.
#include <cstdio>
#include <fstream>
#include <regex>
#include <string>

#include "executor/gpu/kernel_sources.h"

namespace {

std::string as_cpp(const limpid::gpu::ProgramSource& source) {
  static const std::regex pointer(R"(GLOBAL (const )?(signed char|\w+) ?\*)");
  static const std::regex kernel(R"(\nKERNEL(?:_\w+)?\((\d+)(?:, \w+)?\)\s+(\w+)\()");
  std::string table;
  for (std::sregex_iterator i(source.text.begin(), source.text.end(), kernel), end; i != end; ++i)
    table +=
        "{\"" + (*i)[2].str() + "\", {" + (*i)[1].str() + ", runner(&" + (*i)[2].str() + ")}},\n";
  return "#include \"executor/kernel_counts/words.h\"\nnamespace limpid::counts {\nnamespace {\n" +
         std::regex_replace(source.text, pointer, "Global<$1$2>") + "const Entry kEntry(\"" +
         source.name + "\", {\n" + table + "});\n}\n}\n";
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  for (const limpid::gpu::ProgramSource& source : limpid::gpu::all_programs()) {
    if (source.name != argv[1]) continue;
    std::ofstream file(argv[2]);
    file << as_cpp(source);
    return file.flush() ? 0 : 1;
  }
  std::fprintf(stderr, "error: unknown program '%s'\n", argv[1]);
  return 1;
}
