// Random weights of a model that begins to learn.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "checkpoint/checkpoint.h"

namespace limpid {

// Returns the checkpoint of these names and shapes (model/configuration.h) with f32 tensors in
// memory, which are filled as GPT-2's were (Radford et al. 2019, section 2.3). Matrices and
// embeddings are drawn from a normal distribution with the deviation that kInitializerRangeKey
// states (0.02, GPT-2's, if it is absent). For matrices that add to the residual stream it is
// divided by sqrt(2 n_layers). Norms are 1 and biases 0. The numbers depend only on that deviation,
// the seed, the tensor's name and the element. Throws FormatError for a deviation that is not a
// number above 0, ResourceError.
std::shared_ptr<Checkpoint> with_initial_weights(const Checkpoint& shapes, uint64_t seed);

// Fills `values` with numbers that are uniform in [-bound, bound) and depend only on the seed, the
// name and the element.
void fill_uniform(std::span<float> values, double bound, uint64_t seed, std::string_view name);

}  // namespace limpid
