// The GGUF reader on any bytes: see tests/checkpoint/untrusted_check.h for what must hold.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "checkpoint/untrusted_check.h"
#include "fuzz/gguf_mutator.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned seed) {
  if (seed % 8 == 0) return LLVMFuzzerMutate(data, size, max_size);
  auto sketch = limpid::fuzz::parse_sketch({reinterpret_cast<const char*>(data), size});
  limpid::fuzz::GgufMutator(seed).mutate(sketch);
  const std::string bytes = serialize(sketch);
  const size_t n_bytes = std::min(bytes.size(), max_size);
  std::memcpy(data, bytes.data(), n_bytes);
  return n_bytes;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (limpid::check_gguf(std::as_bytes(std::span(data, size))) == limpid::Verdict::kBroken)
    std::abort();
  return 0;
}
