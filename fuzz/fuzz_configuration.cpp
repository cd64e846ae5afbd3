// params.json, config.json and generation_config.json on any bytes, beside the weights of a tiny
// model.
#include <cstddef>
#include <cstdint>

#include "model/untrusted_model.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  limpid::check_configuration({reinterpret_cast<const char*>(data), size});
  return 0;
}
