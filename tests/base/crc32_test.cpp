#include "base/crc32.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace limpid {
namespace {

std::span<const std::byte> bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

// What CRC catalogues call the check value, and others from Python's zlib.
TEST(Crc32, HasTheKnownValues) {
  EXPECT_EQ(crc32({}), 0u);
  EXPECT_EQ(crc32(bytes("123456789")), 0xcbf43926u);
  EXPECT_EQ(crc32(bytes("a")), 0xe8b7be43u);
  EXPECT_EQ(crc32(bytes("The quick brown fox jumps over the lazy dog")), 0x414fa339u);
}

TEST(Crc32, ContinuesOverPieces) {
  std::string text;
  for (int i = 0; i < 100; ++i) text += static_cast<char>(i * 37);
  const uint32_t whole = crc32(bytes(text));
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    const uint32_t first = crc32(bytes(text).first(cut));
    EXPECT_EQ(crc32(bytes(text).subspan(cut), first), whole) << cut;
  }
}

}  // namespace
}  // namespace limpid
