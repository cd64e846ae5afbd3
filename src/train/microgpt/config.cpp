#include "train/microgpt/config.h"

#include "base/check.h"

namespace limpid::microgpt {
namespace {

// Far above every practical size here, and small enough that byte counts do not overflow.
constexpr int64_t kMaxSize = 1 << 16;
constexpr int64_t kMaxLayers = 1 << 10;

void check_size(std::string_view name, int64_t value, int64_t max) {
  LIMPID_CHECK(ArgumentError, value >= 1 && value <= max, "Shape::{} {}: must be from 1 to {}",
               name, value, max);
}

}  // namespace

void validate(const Shape& shape) {
  check_size("n_embd", shape.n_embd, kMaxSize);
  check_size("n_layer", shape.n_layer, kMaxLayers);
  check_size("n_head", shape.n_head, kMaxSize);
  check_size("block_size", shape.block_size, kMaxSize);
  LIMPID_CHECK(ArgumentError, shape.n_embd % shape.n_head == 0,
               "n_head {} does not divide n_embd {}; every head needs an equal slice", shape.n_head,
               shape.n_embd);
}

Config preset(std::string_view name) {
  Config config;
  if (name == "fsharp") return config;
  LIMPID_CHECK(ArgumentError, name == "python",
               "unknown preset '{}'; the presets are python and fsharp", name);
  config.shape.block_size = 16;
  config.num_steps = 1000;
  config.random_style = RandomStyle::kPython;
  config.period_in_alphabet = false;
  config.python_sum_order = true;
  config.steps_between_lines = 1;
  return config;
}

}  // namespace limpid::microgpt
