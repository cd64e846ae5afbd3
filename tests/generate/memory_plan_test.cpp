#include "generate/memory_plan.h"

#include <gtest/gtest.h>

#include "limpid/model.hpp"
#include "model/registry.h"
#include "model/tiny_checkpoint.h"

namespace limpid {
namespace {

TEST(MemoryPlan, CountsTensorsThatAreMade) {
  const auto checkpoint = testing::tiny_checkpoint();
  const DecoderSpec spec = read_spec(*checkpoint);
  EXPECT_EQ(make_memory_plan(*checkpoint, spec, {}).weights_packed, 0u);
  const char* name = "blk.0.ffn_gate.weight";
  checkpoint->made[name] = {"joined", [] { return Tensor(); }};
  EXPECT_EQ(make_memory_plan(*checkpoint, spec, {}).weights_packed,
            checkpoint->find(name)->n_bytes());
}

}  // namespace
}  // namespace limpid
