// Requests to the server on any bytes: a header, and behind it a JSON body that every API reads.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "server/untrusted_request.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  if (limpid::check_untrusted_request(input) == limpid::RequestVerdict::kBroken) std::abort();
  return 0;
}
