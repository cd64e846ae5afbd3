// Random numbers identical to those of CPython's `random` module, so that a run of the Python
// program can be repeated exactly.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <span>
#include <utility>
#include <vector>

namespace limpid::microgpt {

// The Mersenne Twister MT19937 (Matsumoto & Nishimura 1998), with the methods of Python's module.
class PythonRandom {
 public:
  // random.seed(seed) for an integer: the key is its absolute value in 32-bit digits.
  explicit PythonRandom(int64_t seed);

  // random.getrandbits(n_bits), 1 <= n_bits <= 32.
  uint32_t bits(int n_bits);
  // random.random(): uniform in [0, 1), a multiple of 2^-53.
  double uniform();
  // random.gauss(mean, deviation): Box-Muller pairs. The second number of a pair is kept for the
  // next call.
  double gauss(double mean, double deviation);
  // random.randrange(bound), 1 <= bound < 2^32. Without bias: a draw >= bound is repeated.
  uint32_t below(uint32_t bound);

  // random.shuffle(items): Fisher-Yates from the end.
  template <typename T>
  void shuffle(std::vector<T>& items) {
    for (size_t i = items.size(); i-- > 1;) {
      std::swap(items[i], items[below(static_cast<uint32_t>(i + 1))]);
    }
  }

  // random.choices(range(len(weights)), weights)[0]. Weights must be finite and not negative, and
  // at least one must be above zero. With `reaching`, the first running sum that reaches the draw
  // decides; Python wants one above it.
  size_t choice(std::span<const double> weights, bool reaching = false);

 private:
  std::mt19937 generator_;
  std::optional<double> kept_gauss_;
};

}  // namespace limpid::microgpt
