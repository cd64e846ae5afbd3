// Cosines and sines of rotary positions, by routines of our own: the same bits on every machine.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace limpid {

// Sine and cosine of an angle in radians, 0 <= angle < 2^21, each within 5e-16 of the true value.
struct SineCosine {
  double sine;
  double cosine;
};
SineCosine sine_cosine(double angle);

// cos and sin of position * inverse_frequencies[i]: [n_positions, n_rot / 2], computed in f64 and
// rounded to f32, as far as positions are used: a long context would take longer than the first
// token.
class RopeAngles {
 public:
  // Sets the memory aside. Throws ArgumentError when an angle leaves [0, 2^21), ShapeError when the
  // table is too large.
  RopeAngles(std::span<const double> inverse_frequencies, int64_t n_positions);

  int64_t n_positions() const { return n_positions_; }
  // Computes what is missing of the positions up to `last`, which is below n_positions(). Allocates
  // nothing.
  void compute_to(int64_t last);
  // Of a position that has been computed.
  const float* cosines(int64_t position) const { return cosines_.data() + position * half_; }
  const float* sines(int64_t position) const { return sines_.data() + position * half_; }

 private:
  std::vector<double> inverse_frequencies_;
  int64_t half_;  // n_rot / 2
  int64_t n_positions_;
  std::vector<float> cosines_;
  std::vector<float> sines_;
};

}  // namespace limpid
