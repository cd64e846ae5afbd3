#include "train/microgpt/python_random.h"

#include <bit>
#include <cmath>
#include <numbers>

namespace limpid::microgpt {
namespace {

constexpr size_t kShift = 397;
constexpr uint32_t kTwist = 0x9908b0dfU;

}  // namespace

PythonRandom::PythonRandom(int64_t seed) {
  const uint64_t magnitude =
      seed < 0 ? uint64_t{0} - static_cast<uint64_t>(seed) : static_cast<uint64_t>(seed);
  const std::array<uint32_t, 2> key{static_cast<uint32_t>(magnitude),
                                    static_cast<uint32_t>(magnitude >> 32)};
  const size_t key_size = key[1] != 0 ? 2 : 1;

  // init_genrand followed by init_by_array of the 2002 reference code.
  state_[0] = 19650218U;
  for (uint32_t i = 1; i < kStateSize; ++i) {
    state_[i] = 1812433253U * (state_[i - 1] ^ (state_[i - 1] >> 30)) + i;
  }
  const auto mixed = [this](size_t at, uint32_t factor) {
    const uint32_t before = state_[at - 1];
    return state_[at] ^ ((before ^ (before >> 30)) * factor);
  };
  size_t at = 1;
  const auto advance = [&] {
    if (++at == kStateSize) {
      state_[0] = state_[kStateSize - 1];
      at = 1;
    }
  };
  for (size_t round = 0; round < kStateSize; ++round) {
    const size_t digit = round % key_size;
    state_[at] = mixed(at, 1664525U) + key[digit] + static_cast<uint32_t>(digit);
    advance();
  }
  for (size_t round = 1; round < kStateSize; ++round) {
    state_[at] = mixed(at, 1566083941U) - static_cast<uint32_t>(at);
    advance();
  }
  state_[0] = 0x80000000U;
}

// Computes the next 624 numbers of the generator's recurrence.
void PythonRandom::refill() {
  for (size_t i = 0; i < kStateSize; ++i) {
    const uint32_t joined =
        (state_[i] & 0x80000000U) | (state_[(i + 1) % kStateSize] & 0x7fffffffU);
    state_[i] =
        state_[(i + kShift) % kStateSize] ^ (joined >> 1) ^ ((joined & 1U) != 0 ? kTwist : 0U);
  }
  position_ = 0;
}

// Tempering: four invertible shifts and masks that make the bits of a state word look independent.
uint32_t PythonRandom::next() {
  if (position_ == kStateSize) refill();
  uint32_t y = state_[position_++];
  y ^= y >> 11;
  y ^= (y << 7) & 0x9d2c5680U;
  y ^= (y << 15) & 0xefc60000U;
  return y ^ (y >> 18);
}

uint32_t PythonRandom::bits(int n_bits) { return next() >> (32 - n_bits); }

// 53 random bits (27 high and 26 low) divided by 2^53, as in CPython's random_random.
double PythonRandom::uniform() {
  const uint32_t high = bits(27);
  const uint32_t low = bits(26);
  return (high * 0x1p26 + low) * 0x1p-53;
}

// Box-Muller: with u and v uniform, sqrt(-2 log(1 - u)) cos(2 pi v) and the same with sin are two
// independent normal numbers.
double PythonRandom::gauss(double mean, double deviation) {
  double z = 0;
  if (kept_gauss_) {
    z = *kept_gauss_;
    kept_gauss_.reset();
  } else {
    const double angle = uniform() * 2 * std::numbers::pi;
    const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform()));
    z = std::cos(angle) * radius;
    kept_gauss_ = std::sin(angle) * radius;
  }
  return mean + z * deviation;
}

// Rejection makes all results equally likely: for bound 5, 3 bits are drawn until the number is
// below 5.
uint32_t PythonRandom::below(uint32_t bound) {
  const int n_bits = std::bit_width(bound);
  uint32_t drawn = bits(n_bits);
  while (drawn >= bound) drawn = bits(n_bits);
  return drawn;
}

// Draws from the cumulative weights, like random.choices.
size_t PythonRandom::choice(std::span<const double> weights, bool reaching) {
  double total = 0;
  for (const double weight : weights) total += weight;
  const double mark = uniform() * total;
  // Returns the first index whose running sum is greater than the draw (bisect_right), or reaches
  // it, or the last index.
  double running = 0;
  for (size_t i = 0; i + 1 < weights.size(); ++i) {
    running += weights[i];
    if (reaching ? mark <= running : mark < running) return i;
  }
  return weights.size() - 1;
}

}  // namespace limpid::microgpt
