#include "base/crc32.h"

#include <array>
#include <bit>
#include <cstring>

namespace limpid {
namespace {

static_assert(std::endian::native == std::endian::little, "words are read as they lie");

// kTables[k][b]: what the byte `b` contributes when k more bytes follow it. Eight bytes are then
// one step.
constexpr size_t kSlices = 8;
using Tables = std::array<std::array<uint32_t, 256>, kSlices>;

constexpr Tables make_tables() {
  Tables tables{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t remainder = byte;
    for (int bit = 0; bit < 8; ++bit)
      remainder = (remainder >> 1) ^ ((remainder & 1) != 0 ? 0xedb88320U : 0U);
    tables[0][byte] = remainder;
  }
  for (size_t slice = 1; slice < kSlices; ++slice) {
    for (size_t byte = 0; byte < 256; ++byte) {
      const uint32_t before = tables[slice - 1][byte];
      tables[slice][byte] = (before >> 8) ^ tables[0][before & 0xff];
    }
  }
  return tables;
}

constexpr Tables kTables = make_tables();

}  // namespace

uint32_t crc32(std::span<const std::byte> bytes, uint32_t previous) {
  uint32_t crc = ~previous;
  const std::byte* at = bytes.data();
  size_t n = bytes.size();
  for (; n >= kSlices; n -= kSlices, at += kSlices) {
    uint64_t word = 0;
    std::memcpy(&word, at, kSlices);
    word ^= crc;
    crc = 0;
    for (size_t i = 0; i < kSlices; ++i) crc ^= kTables[kSlices - 1 - i][(word >> (8 * i)) & 0xff];
  }
  for (; n > 0; --n, ++at)
    crc = (crc >> 8) ^ kTables[0][(crc ^ std::to_integer<uint32_t>(*at)) & 0xff];
  return ~crc;
}

}  // namespace limpid
