// Philox4x32-10: random numbers as a function of a key and a counter. Such a generator has no state
// to advance: the random numbers of position 1,000 are computed directly, and a sequence gets the
// same numbers whatever is sampled beside it.
#pragma once

#include <array>
#include <cstdint>

namespace limpid {

// Four random words for `counter` under `key`. Each of ten rounds multiplies two words to 64 bits,
// mixes the high halves with the other two words and the key, and swaps places; the key changes by
// constants between rounds. Constants as published (Salmon, Moraes, Dror & Shaw 2011, "Parallel
// random numbers: as easy as 1, 2, 3", table 2 and section 3.3).
inline std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> counter,
                                          std::array<uint32_t, 2> key) {
  constexpr uint64_t kMultiplier0 = 0xD2511F53;
  constexpr uint64_t kMultiplier1 = 0xCD9E8D57;
  constexpr uint32_t kWeyl0 = 0x9E3779B9;  // golden ratio
  constexpr uint32_t kWeyl1 = 0xBB67AE85;  // sqrt(3) - 1
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = kMultiplier0 * counter[0];
    const uint64_t product1 = kMultiplier1 * counter[2];
    counter = {static_cast<uint32_t>(product1 >> 32U) ^ counter[1] ^ key[0],
               static_cast<uint32_t>(product1),
               static_cast<uint32_t>(product0 >> 32U) ^ counter[3] ^ key[1],
               static_cast<uint32_t>(product0)};
    key = {key[0] + kWeyl0, key[1] + kWeyl1};
  }
  return counter;
}

}  // namespace limpid
