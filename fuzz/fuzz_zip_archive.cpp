// The reader of zip archives as `limpid pull` uses it for wheels, on any bytes.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "checkpoint/zip_archive.h"
#include "limpid/error.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const auto zip = limpid::ZipArchive::parse("a.zip", std::as_bytes(std::span(data, size)),
                                               limpid::ZipMethods::kStoredOrDeflated);
    for (const limpid::ZipRecord& record : zip.records()) {
      uint64_t n_taken = 0;
      zip.extract(record, [&](std::span<const std::byte> bytes) {
        n_taken += bytes.size();
        if (n_taken > record.size) std::abort();
      });
    }
  } catch (const limpid::Error&) {
    return 0;
  }
  return 0;
}
