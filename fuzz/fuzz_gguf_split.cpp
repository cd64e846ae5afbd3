// A GGUF model in two parts, one of which is mutated field by field. The input is the size of the
// first part in four bytes, then both.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "fuzz/gguf_mutator.h"
#include "model/untrusted_model.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned seed) {
  uint32_t n_first = 0;
  if (seed % 8 == 0 || size < sizeof(n_first)) return LLVMFuzzerMutate(data, size, max_size);
  std::memcpy(&n_first, data, sizeof(n_first));
  const size_t n_parts = size - sizeof(n_first);
  const size_t cut = sizeof(n_first) + std::min<size_t>(n_first, n_parts);
  if (seed % 2 == 0) {
    return cut + limpid::fuzz::mutate_gguf(data + cut, size - cut, max_size - cut, seed);
  }
  const std::string second(data + cut, data + size);
  std::vector<uint8_t> first(data + sizeof(n_first), data + cut);
  first.resize(max_size);
  const size_t n_free = max_size - sizeof(n_first);
  n_first = static_cast<uint32_t>(
      limpid::fuzz::mutate_gguf(first.data(), cut - sizeof(n_first), n_free, seed));
  const size_t n_second = std::min(second.size(), n_free - n_first);
  std::memcpy(data, &n_first, sizeof(n_first));
  std::memcpy(data + sizeof(n_first), first.data(), n_first);
  std::memcpy(data + sizeof(n_first) + n_first, second.data(), n_second);
  return sizeof(n_first) + n_first + n_second;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  limpid::check_gguf_split({reinterpret_cast<const char*>(data), size});
  return 0;
}
