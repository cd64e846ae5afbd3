// The settings of a run, and two presets: Karpathy's Python program, and the F# article.
#pragma once

#include <cstdint>
#include <string_view>

namespace limpid::microgpt {

// The shape of the model. `vocab_size` follows from the data (Dataset).
struct Shape {
  int64_t vocab_size = 0;
  int64_t block_size = 8;  // longest context, in tokens
  int64_t n_embd = 16;
  int64_t n_layer = 1;
  int64_t n_head = 4;

  int64_t head_dim() const { return n_embd / n_head; }
};

// Throws ArgumentError naming the size for sizes below 1 or unreasonably large, and if n_head does
// not divide n_embd.
void validate(const Shape& shape);

// How normal numbers are computed from uniform ones, and how a token is drawn from probabilities.
enum class RandomStyle {
  kPython,  // random.gauss (pairs), random.choices (bisect)
  kFsharp,  // one Box-Muller sine per number; the first running sum that reaches the draw
};

struct Config {
  Shape shape;
  int64_t num_steps = 10'000;
  int64_t batch_size = 1;
  double learning_rate = 0.01;  // at step 0; falls linearly to 0
  double beta1 = 0.85;
  double beta2 = 0.99;
  double adam_epsilon = 1e-8;
  double deviation = 0.08;  // standard deviation of the initial weights
  double temperature = 0.5;
  int64_t samples = 20;
  int64_t seed = 42;
  RandomStyle random_style = RandomStyle::kFsharp;
  bool period_in_alphabet = true;     // the F# article counts a '.' that no name contains
  bool python_sum_order = false;      // dot products add from left to right, rounding each time
  int64_t steps_between_lines = 100;  // between lines of printed progress
};

// Returns the preset "fsharp" or "python". Throws ArgumentError.
Config preset(std::string_view name);

}  // namespace limpid::microgpt
