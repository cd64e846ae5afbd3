// The names, shapes and other entries of a bare state dictionary.
#include <cstddef>
#include <cstdint>

#include "model/untrusted_model.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  limpid::check_state_dict({reinterpret_cast<const char*>(data), size});
  return 0;
}
