// The sixteen lanes and the functions made of them: every instruction set gives the bits of the
// scalar one, and the functions are as accurate as math-inl.h says.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "executor/cpu/isa.h"
#include "executor/executors.h"
#include "executor/op_cases.h"
#include "executor/probe/probes.h"
#include "tensor/codec.h"

namespace limpid {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr int kLanes = 16;
constexpr UnaryKind kUnaryKinds[] = {UnaryKind::kSilu, UnaryKind::kGeluTanh, UnaryKind::kGeluErf,
                                     UnaryKind::kRelu};

// Bit patterns, with one for all NaNs: which payload survives is not defined.
std::vector<uint32_t> bits(const std::vector<float>& values) {
  std::vector<uint32_t> out;
  out.reserve(values.size());
  for (const float v : values)
    out.push_back(std::isnan(v) ? 0x7FC0'0000U : std::bit_cast<uint32_t>(v));
  return out;
}

// Random bit patterns, so all exponents, subnormals, infinities and NaNs; then values where
// something happens.
std::vector<float> probes(int n, uint64_t seed) {
  std::vector<float> values;
  uint64_t state = seed;
  for (int i = 0; i < n; ++i) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    values.push_back(std::bit_cast<float>(static_cast<uint32_t>(state >> 32)));
  }
  for (const float v : {0.0F,           1.0F,           0.5F,
                        1.5F,           2.5F,           65504.0F,
                        65520.0F,       65519.996F,     5.9604645e-08F,
                        2.9802322e-08F, 6.1035156e-05F, 88.72F,
                        88.73F,         87.33F,         103.97F,
                        104.0F,         1e-45F,         1.17549435e-38F,
                        3.4e38F,        kInf,           kNan}) {
    values.push_back(v);
    values.push_back(-v);
  }
  while (values.size() % kLanes != 0) values.push_back(0.0F);
  return values;
}

class Lanes : public testing::TestWithParam<std::string_view> {
 protected:
  const Kernels& kernels() const { return *choose_isa(GetParam()).kernels; }
  const Kernels& scalar() const { return *choose_isa("scalar").kernels; }
  const Probe& probe() const { return probe_of(GetParam()); }
  const Probe& scalar_probe() const { return probe_of("scalar"); }
};
INSTANTIATE_TEST_SUITE_P(Isa, Lanes, testing::ValuesIn(available_isas()),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(Lanes, PrimitivesGiveTheBitsOfTheScalarOnes) {
  const std::vector<float> a = probes(20000, 1), b = probes(20000, 2), c = probes(20000, 3);
  std::vector<float> x(kLanes * kLanesProbeResults), y(x);
  for (size_t i = 0; i < a.size(); i += kLanes) {
    probe().lanes(&a[i], &b[i], &c[i], x.data());
    scalar_probe().lanes(&a[i], &b[i], &c[i], y.data());
    for (int p = 0; p < kLanesProbeResults; ++p) {
      for (int l = 0; l < kLanes; ++l) {
        const auto at = static_cast<size_t>(p) * kLanes + static_cast<size_t>(l);
        ASSERT_EQ(bits({x[at]}), bits({y[at]}))
            << "primitive " << p << " of " << a[i + l] << ", " << b[i + l] << ", " << c[i + l];
      }
    }
    probe().lanes(&a[i], &a[i], &b[i], x.data());
    scalar_probe().lanes(&a[i], &a[i], &b[i], y.data());
    ASSERT_EQ(bits(x), bits(y)) << "equal operands from " << i;
  }
}

TEST_P(Lanes, MaxAndMinTakeTheSecondOperandOfNanAndOfZeros) {
  std::vector<float> a(kLanes, 0.0F), b(kLanes, 0.0F), out(kLanes * kLanesProbeResults);
  a[0] = kNan, b[0] = 1.0F;
  a[1] = 1.0F, b[1] = kNan;
  a[2] = 0.0F, b[2] = -0.0F;
  a[3] = -0.0F, b[3] = 0.0F;
  probe().lanes(a.data(), b.data(), a.data(), out.data());
  for (const int primitive : {0, 1}) {
    const float* y = &out[static_cast<size_t>(primitive) * kLanes];
    EXPECT_EQ(y[0], 1.0F);
    EXPECT_TRUE(std::isnan(y[1]));
    EXPECT_TRUE(std::signbit(y[2]));
    EXPECT_FALSE(std::signbit(y[3]));
  }
}

// The order of a sum is part of the numbers that the engine gives.
TEST_P(Lanes, AreAddedInTheFixedTree) {
  const std::vector<float> x = random_values(kLanes, 5);
  std::vector<float> out(kLanes * kLanesProbeResults), tree(x);
  probe().lanes(x.data(), x.data(), x.data(), out.data());
  for (int half = 8; half >= 1; half /= 2) {
    for (int l = 0; l < half; ++l) tree[l] = tree[l] + tree[l + half];
  }
  EXPECT_EQ(out[12 * kLanes], tree[0]);
}

TEST_P(Lanes, ConvertEveryHalfExactly) {
  std::vector<uint16_t> halves(65536 + 5);
  for (size_t i = 0; i < halves.size(); ++i) halves[i] = static_cast<uint16_t>(i);
  std::vector<float> f16(halves.size()), bf16(halves.size()), expected_f16, expected_bf16;
  probe().f16_to_f32(halves.data(), static_cast<int64_t>(halves.size()), f16.data());
  probe().bf16_to_f32(halves.data(), static_cast<int64_t>(halves.size()), bf16.data());
  for (const uint16_t h : halves) {
    expected_f16.push_back(f16_to_f32(h));
    expected_bf16.push_back(bf16_to_f32(h));
  }
  EXPECT_EQ(bits(f16), bits(expected_f16));
  EXPECT_EQ(bits(bf16), bits(expected_bf16));
}

TEST_P(Lanes, RoundToHalvesAsTheCodecDoes) {
  std::vector<float> values = probes(200000, 7);
  for (int i = 0; i < 60000; ++i) values.push_back(static_cast<float>(i) * 0x1p-26F);  // subnormal
  values.resize(values.size() - 3);                                                    // a tail
  std::vector<uint16_t> halves(values.size());
  probe().f32_to_f16(values.data(), static_cast<int64_t>(values.size()), halves.data());
  for (size_t i = 0; i < values.size(); ++i) {
    if (std::isnan(values[i])) {
      EXPECT_TRUE(std::isnan(f16_to_f32(halves[i])));
    } else {
      ASSERT_EQ(halves[i], f32_to_f16(values[i])) << values[i];
    }
  }
}

TEST_P(Lanes, FunctionsGiveTheBitsOfTheScalarOnes) {
  std::vector<float> x = probes(50000, 9);
  for (const float v : random_values(50000, 10)) x.push_back(8 * v);
  x.push_back(1.0F);  // a tail
  std::vector<float> y(x.size()), expected(x.size());
  const auto n = static_cast<int64_t>(x.size());
  for (const UnaryKind kind : kUnaryKinds) {
    kernels().unary(kind, x.data(), n, y.data());
    scalar().unary(kind, x.data(), n, expected.data());
    EXPECT_EQ(bits(y), bits(expected)) << "function " << static_cast<int>(kind);
  }
  probe().exp(x.data(), n, y.data());
  scalar_probe().exp(x.data(), n, expected.data());
  EXPECT_EQ(bits(y), bits(expected)) << "exp";
  kernels().swiglu(x.data(), x.data(), n, y.data());
  scalar().swiglu(x.data(), x.data(), n, expected.data());
  EXPECT_EQ(bits(y), bits(expected)) << "swiglu";
}

// ---- accuracy, of one instruction set: the others give the same bits ----

std::vector<float> apply(UnaryKind kind, const std::vector<float>& x) {
  std::vector<float> y(x.size());
  choose_isa("").kernels->unary(kind, x.data(), static_cast<int64_t>(x.size()), y.data());
  return y;
}

std::vector<float> exponentials(const std::vector<float>& x) {
  std::vector<float> y(x.size());
  probe_of(choose_isa("").name).exp(x.data(), static_cast<int64_t>(x.size()), y.data());
  return y;
}

std::vector<float> sweep(float from, float to, int n) {
  std::vector<float> x;
  for (int i = 0; i <= n; ++i)
    x.push_back(from + (to - from) * static_cast<float>(i) / static_cast<float>(n));
  return x;
}

// Distance of `y` from `exact` in units of the spacing of floats at `exact`.
double ulps(float y, double exact) {
  const double magnitude = std::max(std::abs(exact), double{std::numeric_limits<float>::min()});
  const double spacing = std::ldexp(1.0, std::ilogb(magnitude) - 23);
  return std::abs(y - exact) / spacing;
}

TEST(Functions, ExpIsWithinOnePointOneUlps) {
  const std::vector<float> x = sweep(-110.0F, 88.7F, 500000);
  const std::vector<float> y = exponentials(x);
  double worst = 0;
  for (size_t i = 0; i < x.size(); ++i) worst = std::max(worst, ulps(y[i], std::exp(double{x[i]})));
  EXPECT_LE(worst, 1.1);
}

TEST(Functions, ExpAtTheEdges) {
  const std::vector<float> y =
      exponentials({0.0F, -0.0F, -kInf, -1e30F, -104.0F, kInf, 89.0F, 1e30F, kNan, 1e-30F});
  EXPECT_EQ(y[0], 1.0F);
  EXPECT_EQ(y[1], 1.0F);
  for (const int i : {2, 3, 4}) EXPECT_EQ(std::bit_cast<uint32_t>(y[static_cast<size_t>(i)]), 0U);
  for (const int i : {5, 6, 7}) EXPECT_EQ(y[static_cast<size_t>(i)], kInf);
  EXPECT_TRUE(std::isnan(y[8]));
  EXPECT_EQ(y[9], 1.0F);
}

double relative_error(float y, double exact) {
  return std::abs(y - exact) / std::max(std::abs(exact), 1e-30);
}

TEST(Functions, ActivationsAreWithinAFewUnitsOfTheTrueValue) {
  const std::vector<float> x = sweep(-20.0F, 20.0F, 400000);
  const std::vector<float> silu = apply(UnaryKind::kSilu, x);
  const std::vector<float> tanh = apply(UnaryKind::kGeluTanh, x);
  const std::vector<float> erf = apply(UnaryKind::kGeluErf, x);
  const std::vector<float> relu = apply(UnaryKind::kRelu, x);
  double worst_silu = 0, worst_tanh = 0, worst_erf = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double v = x[i];
    worst_silu = std::max(worst_silu, relative_error(silu[i], v / (1 + std::exp(-v))));
    // Written so that nothing cancels. The argument of e is rounded to f32 before e magnifies it.
    const double u = std::sqrt(2 / M_PI) * (v + 0.044715 * v * v * v);
    const double exact_tanh = v / (1 + std::exp(-2 * u));
    worst_tanh = std::max(worst_tanh, relative_error(tanh[i], exact_tanh) / (1 + std::abs(2 * u)));
    const double exact_erf = 0.5 * v * std::erfc(-v / std::sqrt(2.0));
    if (v > -12.5) worst_erf = std::max(worst_erf, relative_error(erf[i], exact_erf));
    EXPECT_EQ(relu[i], v > 0 ? x[i] : 0.0F);
  }
  EXPECT_LE(worst_silu, 3e-7);
  EXPECT_LE(worst_tanh, 3e-7);
  EXPECT_LE(worst_erf, 1e-6);
  RecordProperty("worst_gelu_erf", std::to_string(worst_erf * 1e7) + "e-7");
}

TEST(Functions, ActivationsAtTheEdges) {
  for (const UnaryKind f : kUnaryKinds) {
    const std::vector<float> y = apply(f, {0.0F, 1e30F, -1e30F, kInf, kNan, 100.0F});
    EXPECT_EQ(y[0], 0.0F);
    EXPECT_EQ(y[1], 1e30F);
    EXPECT_EQ(y[2], 0.0F);
    EXPECT_EQ(y[3], kInf);
    EXPECT_TRUE(std::isnan(y[4]));
    EXPECT_EQ(y[5], 100.0F);
  }
}

}  // namespace
}  // namespace limpid
