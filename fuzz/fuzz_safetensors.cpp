// The safetensors reader on any bytes: see tests/checkpoint/untrusted_check.h for what must hold.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

#include "checkpoint/untrusted_check.h"

// The input is the header; its length stands before it and as much data behind it as its first
// bytes say, so that a mutation of the JSON alone makes a file.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto whole = std::as_bytes(std::span(data, size));
  if (limpid::check_safetensors(whole) == limpid::Verdict::kBroken) std::abort();
  if (size < 1) return 0;
  const std::string header(reinterpret_cast<const char*>(data) + 1, size - 1);
  const uint64_t length = header.size();
  std::string bytes(sizeof(length), '\0');
  std::memcpy(bytes.data(), &length, sizeof(length));
  bytes += header;
  bytes.append(data[0], '\x3c');
  if (limpid::check_safetensors(std::as_bytes(std::span(bytes))) == limpid::Verdict::kBroken)
    std::abort();
  return 0;
}
