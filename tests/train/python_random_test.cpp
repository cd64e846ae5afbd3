// Against numbers that CPython 3.11's random module gave.
#include "train/microgpt/python_random.h"

#include <gtest/gtest.h>

#include <numeric>

namespace limpid::microgpt {
namespace {

TEST(PythonRandom, Seed42) {
  PythonRandom random(42);
  EXPECT_EQ(random.uniform(), 0x1.4762f307200c5p-1);
  EXPECT_EQ(random.uniform(), 0x1.99c6b5eeb2060p-6);
  EXPECT_EQ(random.uniform(), 0x1.19a1491f589dcp-2);
  for (int i = 0; i < 1000; ++i) random.uniform();
  EXPECT_EQ(random.uniform(), 0x1.f4a7c6a944d7ap-1);
  EXPECT_NEAR(random.gauss(0, 0.08), -0.05086722436682255, 1e-16);
  EXPECT_NEAR(random.gauss(0, 0.08), 0.06254172406249218, 1e-16);
  EXPECT_NEAR(random.gauss(0, 0.08), 0.015079030482999061, 1e-16);
  std::vector<int> items(12);
  std::iota(items.begin(), items.end(), 0);
  random.shuffle(items);
  EXPECT_EQ(items, (std::vector<int>{9, 11, 5, 4, 10, 2, 6, 8, 0, 3, 1, 7}));
  const std::vector<double> weights{0.1, 0.0, 0.5, 0.25, 0.15};
  for (const size_t expected : {0U, 3U, 2U, 2U, 4U, 2U, 2U, 4U})
    EXPECT_EQ(random.choice(weights), expected);
}

TEST(PythonRandom, Seed0) {
  PythonRandom random(0);
  EXPECT_EQ(random.uniform(), 0x1.b0580f98a7dbep-1);
  EXPECT_EQ(random.uniform(), 0x1.84129978f9c1ap-1);
  EXPECT_EQ(random.uniform(), 0x1.aeaa51052e978p-2);
  for (int i = 0; i < 1000; ++i) random.uniform();
  EXPECT_EQ(random.uniform(), 0x1.7e9bbd672e7e6p-1);
  EXPECT_NEAR(random.gauss(0, 0.08), 0.038537693750203515, 1e-16);
  EXPECT_NEAR(random.gauss(0, 0.08), 0.09329441977442018, 1e-16);
  EXPECT_NEAR(random.gauss(0, 0.08), -0.17372353243264338, 1e-16);
  std::vector<int> items(12);
  std::iota(items.begin(), items.end(), 0);
  random.shuffle(items);
  EXPECT_EQ(items, (std::vector<int>{5, 7, 10, 3, 6, 0, 4, 9, 1, 11, 8, 2}));
  const std::vector<double> weights{0.1, 0.0, 0.5, 0.25, 0.15};
  for (const size_t expected : {2U, 0U, 3U, 3U, 2U, 2U, 2U, 2U})
    EXPECT_EQ(random.choice(weights), expected);
}

TEST(PythonRandom, SeedMinus7) {
  PythonRandom random(-7);
  EXPECT_EQ(random.uniform(), 0x1.4b9ad0f953a6ep-2);
  EXPECT_EQ(random.uniform(), 0x1.34f0696513270p-3);
  EXPECT_EQ(random.uniform(), 0x1.4d474883171ffp-1);
  for (int i = 0; i < 1000; ++i) random.uniform();
  EXPECT_EQ(random.uniform(), 0x1.fe03fd274dcdcp-1);
  EXPECT_NEAR(random.gauss(0, 0.08), -0.016508228269617, 1e-16);
  EXPECT_NEAR(random.gauss(0, 0.08), -0.14603239837187418, 1e-16);
  EXPECT_NEAR(random.gauss(0, 0.08), 0.07839771301449498, 1e-16);
  std::vector<int> items(12);
  std::iota(items.begin(), items.end(), 0);
  random.shuffle(items);
  EXPECT_EQ(items, (std::vector<int>{8, 11, 0, 5, 10, 9, 6, 1, 3, 2, 4, 7}));
  const std::vector<double> weights{0.1, 0.0, 0.5, 0.25, 0.15};
  for (const size_t expected : {4U, 2U, 3U, 2U, 2U, 4U, 2U, 2U})
    EXPECT_EQ(random.choice(weights), expected);
}

TEST(PythonRandom, Seed1234567890123) {
  PythonRandom random(1234567890123);
  EXPECT_EQ(random.uniform(), 0x1.a522dfaf660e0p-1);
  EXPECT_EQ(random.uniform(), 0x1.9d9e359f7a764p-3);
  EXPECT_EQ(random.uniform(), 0x1.459b903b7ed25p-1);
  for (int i = 0; i < 1000; ++i) random.uniform();
  EXPECT_EQ(random.uniform(), 0x1.acf99c74049e0p-2);
  EXPECT_NEAR(random.gauss(0, 0.08), 0.10223126937540919, 1e-16);
  EXPECT_NEAR(random.gauss(0, 0.08), -0.20473561483313313, 1e-16);
  EXPECT_NEAR(random.gauss(0, 0.08), 0.015522947764016677, 1e-16);
  std::vector<int> items(12);
  std::iota(items.begin(), items.end(), 0);
  random.shuffle(items);
  EXPECT_EQ(items, (std::vector<int>{4, 8, 11, 9, 3, 5, 0, 6, 7, 10, 1, 2}));
  const std::vector<double> weights{0.1, 0.0, 0.5, 0.25, 0.15};
  for (const size_t expected : {3U, 2U, 0U, 0U, 2U, 3U, 2U, 2U})
    EXPECT_EQ(random.choice(weights), expected);
}

TEST(PythonRandom, Seed9223372036854775807) {
  PythonRandom random(9223372036854775807);
  EXPECT_EQ(random.uniform(), 0x1.443e8e5409ca6p-2);
  EXPECT_EQ(random.uniform(), 0x1.43346b887de9dp-1);
  EXPECT_EQ(random.uniform(), 0x1.9b6b765f6b847p-1);
  for (int i = 0; i < 1000; ++i) random.uniform();
  EXPECT_EQ(random.uniform(), 0x1.026519bdbdbc0p-4);
  EXPECT_NEAR(random.gauss(0, 0.08), -0.06111034975562433, 1e-16);
  EXPECT_NEAR(random.gauss(0, 0.08), -0.06565242053232187, 1e-16);
  EXPECT_NEAR(random.gauss(0, 0.08), -0.1258846736925316, 1e-16);
  std::vector<int> items(12);
  std::iota(items.begin(), items.end(), 0);
  random.shuffle(items);
  EXPECT_EQ(items, (std::vector<int>{2, 11, 3, 1, 9, 6, 8, 4, 0, 7, 10, 5}));
  const std::vector<double> weights{0.1, 0.0, 0.5, 0.25, 0.15};
  for (const size_t expected : {4U, 3U, 2U, 2U, 2U, 4U, 4U, 2U})
    EXPECT_EQ(random.choice(weights), expected);
}

}  // namespace
}  // namespace limpid::microgpt
