#include "train/microgpt/python_random.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <numbers>

namespace limpid::microgpt {
namespace {

using State = std::array<uint32_t, std::mt19937::state_size>;

// A seed sequence of the standard library that gives the generator exactly these words.
struct KnownState {
  using result_type = uint32_t;
  const State& words;

  template <typename Iterator>
  void generate(Iterator begin, Iterator /*end*/) const {
    std::ranges::copy(words, begin);
  }
};

// init_genrand followed by init_by_array of the 2002 reference code.
State state_of(int64_t seed) {
  const uint64_t magnitude =
      seed < 0 ? uint64_t{0} - static_cast<uint64_t>(seed) : static_cast<uint64_t>(seed);
  const std::array<uint32_t, 2> key{static_cast<uint32_t>(magnitude),
                                    static_cast<uint32_t>(magnitude >> 32)};
  const size_t key_size = key[1] != 0 ? 2 : 1;
  State state{19650218U};
  for (uint32_t i = 1; i < state.size(); ++i)
    state[i] = 1812433253U * (state[i - 1] ^ (state[i - 1] >> 30)) + i;
  const auto mixed = [&](size_t at, uint32_t factor) {
    const uint32_t before = state[at - 1];
    return state[at] ^ ((before ^ (before >> 30)) * factor);
  };
  size_t at = 1;
  const auto advance = [&] {
    if (++at < state.size()) return;
    state[0] = state.back();
    at = 1;
  };
  for (size_t round = 0; round < state.size(); ++round) {
    const size_t digit = round % key_size;
    state[at] = mixed(at, 1664525U) + key[digit] + static_cast<uint32_t>(digit);
    advance();
  }
  for (size_t round = 1; round < state.size(); ++round) {
    state[at] = mixed(at, 1566083941U) - static_cast<uint32_t>(at);
    advance();
  }
  state[0] = 0x80000000U;
  return state;
}

}  // namespace

PythonRandom::PythonRandom(int64_t seed) {
  const State state = state_of(seed);
  KnownState known{state};
  generator_.seed(known);
}

uint32_t PythonRandom::bits(int n_bits) {
  return static_cast<uint32_t>(generator_()) >> (32 - n_bits);
}

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
