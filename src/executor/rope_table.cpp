#include "executor/rope_table.h"

#include "base/check.h"
#include "tensor/tensor.h"

namespace limpid {
namespace {

constexpr double kMaxAngle = 2097152.0;  // 2^21

// pi / 2 in three parts. The first two have at most 30 bits, so that their products with a count of
// quarter turns below 2^21 are exact.
constexpr double kQuarter1 = 0x1.921fb54p+0;
constexpr double kQuarter2 = 0x1.10b46118p-30;
constexpr double kQuarter3 = 0x1.313198a2e037p-61;
constexpr double kQuartersPerRadian = 0x1.45f306dc9c883p-1;

// Taylor's series on [-pi/4, pi/4], from the highest power down; the first term left out is below
// 5e-17 of the result.
constexpr double kSine[] = {2.8114572543455206e-15, -7.647163731819816e-13, 1.6059043836821613e-10,
                            -2.505210838544172e-08, 2.7557319223985893e-06, -0.0001984126984126984,
                            0.008333333333333333,   -0.16666666666666666};
constexpr double kCosine[] = {
    4.779477332387385e-14, -1.1470745597729725e-11, 2.08767569878681e-09, -2.755731922398589e-07,
    2.48015873015873e-05,  -0.001388888888888889,   0.041666666666666664};

double polynomial(std::span<const double> coefficients, double x) {
  double sum = 0;
  for (const double coefficient : coefficients) sum = sum * x + coefficient;
  return sum;
}

}  // namespace

SineCosine sine_cosine(double angle) {
  const double beyond_half = angle * kQuartersPerRadian + 0.5;
  const auto n = static_cast<int64_t>(beyond_half);  // the nearest: an angle is not negative
  const auto quarters = static_cast<double>(n);
  const double r = ((angle - quarters * kQuarter1) - quarters * kQuarter2) - quarters * kQuarter3;
  const double r2 = r * r;
  const double s = r + r * r2 * polynomial(kSine, r2);
  const double c = 1.0 - (0.5 * r2 - r2 * r2 * polynomial(kCosine, r2));
  switch (n % 4) {
    case 0:
      return {s, c};
    case 1:
      return {c, -s};
    case 2:
      return {-s, -c};
    default:
      return {-c, s};
  }
}

RopeAngles::RopeAngles(std::span<const double> inverse_frequencies, int64_t n_positions)
    : inverse_frequencies_(inverse_frequencies.begin(), inverse_frequencies.end()),
      half_(static_cast<int64_t>(inverse_frequencies.size())),
      n_positions_(n_positions) {
  const auto size = static_cast<size_t>(Shape{n_positions, half_}.n_elements());
  for (const double frequency : inverse_frequencies) {
    LIMPID_CHECK(ArgumentError,
                 frequency >= 0 && frequency * static_cast<double>(n_positions) < kMaxAngle,
                 "[rope] inverse frequency {} over {} positions gives angles outside [0, {}); use "
                 "a shorter context",
                 frequency, n_positions, kMaxAngle);
  }
  cosines_.reserve(size);
  sines_.reserve(size);
}

void RopeAngles::compute_to(int64_t last) {
  LIMPID_ASSERT(last < n_positions_);
  if (half_ == 0) return;
  for (int64_t position = static_cast<int64_t>(cosines_.size()) / half_; position <= last;
       ++position) {
    for (const double frequency : inverse_frequencies_) {
      const SineCosine turn = sine_cosine(static_cast<double>(position) * frequency);
      cosines_.push_back(static_cast<float>(turn.cosine));
      sines_.push_back(static_cast<float>(turn.sine));
    }
  }
}

}  // namespace limpid
