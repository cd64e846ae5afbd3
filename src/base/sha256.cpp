#include "base/sha256.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/mapped_file.h"

namespace limpid {
namespace {

// The first 32 bits of the fractional parts of the cube roots of the first 64 primes.
constexpr std::array<uint32_t, 64> kRoundConstants = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

}  // namespace

// Mixes one block of 64 bytes into the state (FIPS 180-4, 6.2.2). The 16 words of the block are
// expanded to 64, and each of 64 rounds mixes one of them into the eight working variables.
void Sha256::compress(const std::byte* block) {
  std::array<uint32_t, 64> w;
  std::memcpy(w.data(), block, 64);
  for (size_t t = 0; t < 16; ++t) w[t] = __builtin_bswap32(w[t]);  // big-endian in the message
  for (size_t t = 16; t < 64; ++t) {
    const uint32_t s0 = std::rotr(w[t - 15], 7) ^ std::rotr(w[t - 15], 18) ^ (w[t - 15] >> 3);
    const uint32_t s1 = std::rotr(w[t - 2], 17) ^ std::rotr(w[t - 2], 19) ^ (w[t - 2] >> 10);
    w[t] = w[t - 16] + s0 + w[t - 7] + s1;
  }
  auto [a, b, c, d, e, f, g, h] = state_;
  for (size_t t = 0; t < 64; ++t) {
    const uint32_t sum1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
    const uint32_t t1 = h + sum1 + ((e & f) ^ (~e & g)) + kRoundConstants[t] + w[t];
    const uint32_t sum0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
    const uint32_t t2 = sum0 + ((a & b) ^ (a & c) ^ (b & c));
    h = g;
    g = f;
    f = e;
    e = d + t1;
    d = c;
    c = b;
    b = a;
    a = t1 + t2;
  }
  const std::array<uint32_t, 8> mixed = {a, b, c, d, e, f, g, h};
  for (size_t i = 0; i < 8; ++i) state_[i] += mixed[i];
}

void Sha256::update(std::span<const std::byte> bytes) {
  n_bytes_ += bytes.size();
  while (!bytes.empty()) {
    if (n_pending_ == 0 && bytes.size() >= pending_.size()) {
      compress(bytes.data());
      bytes = bytes.subspan(pending_.size());
      continue;
    }
    const size_t n = std::min(bytes.size(), pending_.size() - n_pending_);
    std::memcpy(pending_.data() + n_pending_, bytes.data(), n);
    n_pending_ += n;
    bytes = bytes.subspan(n);
    if (n_pending_ == pending_.size()) {
      compress(pending_.data());
      n_pending_ = 0;
    }
  }
}

std::string Sha256::hex() {
  const uint64_t n_bits = n_bytes_ * 8;
  std::array<std::byte, 72> padding{std::byte{0x80}};
  // The padding: 0x80, zeros up to 56 modulo 64, then the length of the message in bits.
  const size_t n_zeros = (n_pending_ < 56 ? 56 : 120) - n_pending_;
  for (size_t i = 0; i < 8; ++i) {
    padding[n_zeros + i] = static_cast<std::byte>(n_bits >> (56 - 8 * i));
  }
  update({padding.data(), n_zeros + 8});
  std::string text;
  for (const uint32_t word : state_) text += fmt::format("{:08x}", word);
  return text;
}

std::string sha256_of(std::string_view bytes) {
  Sha256 digest;
  digest.update(std::as_bytes(std::span(bytes)));
  return digest.hex();
}

std::string sha256_of_file(const std::string& path) {
  return sha256_of(text_of(*MappedFile::open(path)));
}

}  // namespace limpid
