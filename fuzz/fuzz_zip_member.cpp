// The reader of one file out of a zip archive, which `limpid pull` uses for wheels, on any bytes.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "checkpoint/temp_file.h"
#include "cli/zip_member.h"
#include "limpid/error.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr uint64_t kMost = 1 << 16;
  static const limpid::TempFolder folder;
  const auto path = folder.write("a.zip", {reinterpret_cast<const char*>(data), size});
  uint64_t n_taken = 0;
  try {
    limpid::cli::read_zip_member(path, "a", kMost, [&](std::span<const std::byte> bytes) {
      n_taken += bytes.size();
      if (n_taken > kMost) std::abort();
    });
  } catch (const limpid::Error&) {
    return 0;
  }
  return 0;
}
