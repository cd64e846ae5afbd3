// Importance matrices on any bytes: llama.cpp's .dat, and GGUF.
#include <cstddef>
#include <cstdint>

#include "model/untrusted_model.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  limpid::check_importance({reinterpret_cast<const char*>(data), size});
  return 0;
}
