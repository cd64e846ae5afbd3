// The GGUF reader on any bytes: see tests/checkpoint/untrusted_check.h for what must hold.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "checkpoint/untrusted_check.h"
#include "fuzz/gguf_mutator.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned seed) {
  if (seed % 8 == 0) return LLVMFuzzerMutate(data, size, max_size);
  return limpid::fuzz::mutate_gguf(data, size, max_size, seed);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (limpid::check_gguf(std::as_bytes(std::span(data, size))) == limpid::Verdict::kBroken)
    std::abort();
  return 0;
}
