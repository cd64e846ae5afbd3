// SHA-256 (FIPS 180-4), computed piece by piece.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace limpid {

// The digest of one message. Pieces of any size may be added; 64 bytes at a time are mixed into the
// state, and `pending_` keeps the rest.
class Sha256 {
 public:
  // Adds the next bytes of the message.
  void update(std::span<const std::byte> bytes);
  // Ends the message and returns the digest: 64 lower-case hexadecimal digits. The object cannot be
  // used again.
  std::string hex();

 private:
  void compress(const std::byte* block);

  std::array<uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<std::byte, 64> pending_{};
  size_t n_pending_ = 0;
  uint64_t n_bytes_ = 0;
};

std::string sha256_of(std::string_view bytes);
// Of a file's bytes. Throws ResourceError.
std::string sha256_of_file(const std::string& path);

}  // namespace limpid
