// Bytes as text (RFC 4648, section 4).
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace limpid {

inline constexpr std::string_view kBase64Digits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

// Four characters for each three bytes, with "=" at the end: "Man" -> "TWFu", "M" -> "TQ==".
std::string base64(std::span<const std::byte> bytes);

}  // namespace limpid
