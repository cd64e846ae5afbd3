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
  const MemoryPlan mapped = make_memory_plan(*checkpoint, spec, {});
  EXPECT_EQ(mapped.weights_packed, 0u);
  const char* name = "blk.0.ffn_gate.weight";
  const TensorView tensor = *checkpoint->find(name);
  checkpoint->derived[name] = {"columns joined", [] { return Tensor(); }, {}};
  const MemoryPlan copied = make_memory_plan(*checkpoint, spec, {});
  EXPECT_EQ(copied.weights_packed, tensor.n_bytes());
  EXPECT_EQ(copied.weights_in_file, mapped.weights_in_file - tensor.n_bytes());
  checkpoint->derived[name] = {"rows joined", [] { return Tensor(); }, {tensor}};
  const MemoryPlan in_parts = make_memory_plan(*checkpoint, spec, {});
  EXPECT_EQ(in_parts.weights_packed, 0u);
  EXPECT_EQ(in_parts.weights_in_file, mapped.weights_in_file);
}

}  // namespace
}  // namespace limpid
