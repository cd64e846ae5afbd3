// The index of a model in two shards, on any bytes.
#include <cstddef>
#include <cstdint>

#include "model/untrusted_model.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  limpid::check_safetensors_index({reinterpret_cast<const char*>(data), size});
  return 0;
}
