// The integer product must be exact for all codes and activations, also where 16-bit sums of
// products would saturate.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "executor/executors.h"
#include "executor/probe/probes.h"

namespace limpid {
namespace {

struct Operands {
  uint8_t codes[64];
  int8_t x[4];
};

void expect_exact(const Operands& operands, int32_t start) {
  int32_t expected[16];
  for (int row = 0; row < 16; ++row) {
    expected[row] = start;
    for (int i = 0; i < 4; ++i) expected[row] += operands.codes[4 * row + i] * operands.x[i];
  }
  for (const auto isa : available_isas()) {
    int32_t sums[16];
    std::fill(std::begin(sums), std::end(sums), start);
    probe_of(isa).dot4(sums, operands.codes, operands.x);
    for (int row = 0; row < 16; ++row) ASSERT_EQ(sums[row], expected[row]) << isa << " row " << row;
  }
}

TEST(Dot4, ExactAtTheEndsOfTheRange) {
  const int ends[] = {-128, -127, -1, 0, 1, 126, 127};
  const int codes[] = {0, 1, 15, 16, 127, 128, 240, 254, 255};
  for (const int x0 : ends) {
    for (const int x1 : ends) {
      for (const int x2 : ends) {
        for (const int x3 : ends) {
          Operands operands{};
          const int x[] = {x0, x1, x2, x3};
          for (int i = 0; i < 4; ++i) operands.x[i] = static_cast<int8_t>(x[i]);
          for (int i = 0; i < 64; ++i) {
            operands.codes[i] = static_cast<uint8_t>(codes[(i + i / 4) % 9]);
          }
          expect_exact(operands, -100'000);
          std::fill(std::begin(operands.codes), std::end(operands.codes), uint8_t{255});
          expect_exact(operands, 1'000'000);
        }
      }
    }
  }
}

TEST(Dot4, ExactAtRandom) {
  std::mt19937 random(1);
  for (int round = 0; round < 10'000; ++round) {
    Operands operands{};
    for (uint8_t& code : operands.codes) code = static_cast<uint8_t>(random());
    for (int8_t& x : operands.x) x = static_cast<int8_t>(random());
    expect_exact(operands, static_cast<int32_t>(random() >> 8));
  }
}

}  // namespace
}  // namespace limpid
