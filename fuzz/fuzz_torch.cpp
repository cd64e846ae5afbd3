// The readers of PyTorch's archives and pickles on any bytes: see
// tests/checkpoint/untrusted_check.h for what must hold.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "checkpoint/untrusted_check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string archive = limpid::torch_archive_of({reinterpret_cast<const char*>(data), size});
  // Exactly as large as it is, so that a read beyond it is seen.
  const auto bytes = std::as_bytes(std::span(archive));
  const std::vector<std::byte> copy(bytes.begin(), bytes.end());
  if (limpid::check_torch(copy) == limpid::Verdict::kBroken) std::abort();
  return 0;
}
