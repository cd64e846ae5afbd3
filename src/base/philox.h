// Philox4x32-10: random numbers as a function of a key and a counter. Such a generator has no state
// to advance: the random numbers of position 1,000 are computed directly, and a sequence gets the
// same numbers whatever is sampled beside it.
#pragma once

#include <array>
#include <cstdint>

namespace limpid {

// Replaces a counter by four random words for it under `key`. Each of ten rounds multiplies two
// words to 64 bits, mixes the high halves with the other two words and the key, and swaps places;
// the key changes by constants between rounds. Constants as published (Salmon, Moraes, Dror & Shaw
// 2011, "Parallel random numbers: as easy as 1, 2, 3", table 2 and section 3.3).
//
// (always_inline, and no std::array: kernels, which are compiled once for each instruction set, use
// this function, and the linker must not merge their copies into one. docs/adr/0002 has the
// reason.)
[[gnu::always_inline]] inline void philox4x32(uint32_t (&counter)[4], uint64_t key) {
  constexpr uint64_t kMultiplier0 = 0xD2511F53;
  constexpr uint64_t kMultiplier1 = 0xCD9E8D57;
  constexpr uint32_t kWeyl0 = 0x9E3779B9;  // golden ratio
  constexpr uint32_t kWeyl1 = 0xBB67AE85;  // sqrt(3) - 1
  auto key0 = static_cast<uint32_t>(key);
  auto key1 = static_cast<uint32_t>(key >> 32U);
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = kMultiplier0 * counter[0];
    const uint64_t product1 = kMultiplier1 * counter[2];
    counter[0] = static_cast<uint32_t>(product1 >> 32U) ^ counter[1] ^ key0;
    counter[1] = static_cast<uint32_t>(product1);
    counter[2] = static_cast<uint32_t>(product0 >> 32U) ^ counter[3] ^ key1;
    counter[3] = static_cast<uint32_t>(product0);
    key0 += kWeyl0;
    key1 += kWeyl1;
  }
}

// The four words for number `i` of the stream of numbers that `stream` and `key` choose.
inline std::array<uint32_t, 4> philox4x32(uint64_t i, uint64_t stream, uint64_t key) {
  uint32_t words[4] = {static_cast<uint32_t>(i), static_cast<uint32_t>(i >> 32U),
                       static_cast<uint32_t>(stream), static_cast<uint32_t>(stream >> 32U)};
  philox4x32(words, key);
  return {words[0], words[1], words[2], words[3]};
}

}  // namespace limpid
