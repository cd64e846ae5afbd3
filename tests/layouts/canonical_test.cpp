#include "layouts/canonical.h"

#include <gtest/gtest.h>

#include "limpid/error.hpp"
#include "model/tiny_checkpoint.h"

namespace limpid {
namespace {

TEST(Canonical, GgufStaysAsItIs) {
  const auto checkpoint = testing::tiny_checkpoint();
  const Checkpoint same = to_canonical(*checkpoint);
  EXPECT_EQ(same.tensor_order, checkpoint->tensor_order);
  EXPECT_EQ(same.metadata.all().size(), checkpoint->metadata.all().size());
}

}  // namespace
}  // namespace limpid
