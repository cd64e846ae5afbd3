// The reader of zip archives as `limpid pull` uses it for wheels, on any bytes: see
// tests/checkpoint/untrusted_check.h for what must hold.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "checkpoint/untrusted_check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (limpid::check_zip(std::as_bytes(std::span(data, size))) == limpid::Verdict::kBroken)
    std::abort();
  return 0;
}
