// Bytes as text (RFC 4648, section 4).
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace limpid {

// Four characters for each three bytes, with "=" at the end: "Man" -> "TWFu", "M" -> "TQ==".
std::string base64(std::span<const std::byte> bytes);

}  // namespace limpid
