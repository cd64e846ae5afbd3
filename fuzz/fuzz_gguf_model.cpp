// A GGUF file from its bytes to the model's spec and tokenizer, mutated field by field.
#include <cstddef>
#include <cstdint>

#include "fuzz/gguf_mutator.h"
#include "model/untrusted_model.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned seed) {
  if (seed % 8 == 0) return LLVMFuzzerMutate(data, size, max_size);
  return limpid::fuzz::mutate_gguf(data, size, max_size, seed);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  limpid::check_gguf_model({reinterpret_cast<const char*>(data), size});
  return 0;
}
