#include "cli/serve_models.h"

#include <gtest/gtest.h>

namespace limpid::cli {
namespace {

std::vector<ShelvedModel> models_with(std::initializer_list<uint64_t> available) {
  std::vector<ShelvedModel> models;
  for (const uint64_t n : available) models.push_back({{.n_available = n}, nullptr});
  return models;
}

// The memory of the device counts, which may be a GPU's, and not what the host has.
TEST(ShelfLimits, AreThoseOfTheScarcestDevice) {
  OfferFlags offer;
  EXPECT_EQ(shelf_limits(offer, models_with({24'000, 88'000}), 1, -1).most_bytes, 24'000U);
  EXPECT_EQ(shelf_limits(offer, models_with({0}), 1, -1).most_bytes, 0U);  // unknown
  offer.memory_gb = 2;
  EXPECT_EQ(shelf_limits(offer, models_with({24'000}), 1, -1).most_bytes, 2'000'000'000U);
}

}  // namespace
}  // namespace limpid::cli
