#include "train/initial_weights.h"

#include <cmath>
#include <numbers>

#include "base/check.h"
#include "base/philox.h"
#include "layouts/hugging_face.h"
#include "model/decoder_from_checkpoint.h"

namespace limpid {
namespace {

// FNV-1a (Fowler, Noll & Vo), so that each tensor has random numbers of its own.
uint64_t hash_of(std::string_view name) {
  uint64_t hash = 0xCBF29CE484222325;
  for (const char c : name) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001B3;
  return hash;
}

// Two numbers from a normal distribution, of four random words (Box & Muller 1958).
std::array<double, 2> normal_pair(const std::array<uint32_t, 4>& words) {
  const auto unit = [](uint32_t high, uint32_t low) {  // in (0, 1), 53 bits
    const uint64_t bits = (uint64_t{high} << 21U) ^ (low >> 11U);
    return (static_cast<double>(bits) + 0.5) * 0x1p-53;
  };
  const double radius = std::sqrt(-2.0 * std::log(unit(words[0], words[1])));
  const double angle = 2.0 * std::numbers::pi * unit(words[2], words[3]);
  return {radius * std::cos(angle), radius * std::sin(angle)};
}

void fill_normal(std::span<float> values, double deviation, uint64_t seed, uint64_t stream) {
  for (size_t i = 0; i < values.size(); i += 2) {
    const auto normal = normal_pair(philox4x32(i / 2, stream, seed));
    for (size_t j = i; j < std::min(i + 2, values.size()); ++j)
      values[j] = static_cast<float>(normal[j - i] * deviation);
  }
}

// Every block adds two updates to the residual stream, so its variance would grow with the number
// of layers. Smaller weights in these matrices, by 1 / sqrt(2 n_layers), keep it about constant.
bool adds_to_residual(std::string_view name) {
  return name.ends_with("attn_output.weight") || name.ends_with("ffn_down.weight");
}

// Returns the deviation of new weights that the configuration states, or GPT-2's.
double initial_deviation(const Checkpoint& shapes) {
  const MetadataValue* stated = shapes.metadata.find(kInitializerRangeKey);
  if (stated == nullptr) return 0.02;
  const auto require = [&](bool holds, const char* problem) {
    if (!holds) throw_format_error(shapes.path, "initializer_range", "{}", problem);
  };
  require(stated->is_number(), "is not a number");
  const double deviation = *shapes.metadata.number(kInitializerRangeKey);
  require(deviation > 0, "is not above 0");
  require(deviation <= 1e37, "is above 1e37; weights would not be finite in f32");
  return deviation;
}

}  // namespace

void fill_uniform(std::span<float> values, double bound, uint64_t seed, std::string_view name) {
  for (size_t i = 0; i < values.size(); ++i) {
    const uint32_t word = philox4x32(i / 4, hash_of(name), seed)[i % 4];
    values[i] = static_cast<float>((static_cast<double>(word) * 0x1p-31 - 1.0) * bound);
  }
}

std::shared_ptr<Checkpoint> with_initial_weights(const Checkpoint& shapes, uint64_t seed) {
  auto filled = std::make_shared<Checkpoint>(shapes);
  const double deviation = initial_deviation(shapes);
  const double residual_deviation =
      deviation / std::sqrt(2.0 * static_cast<double>(read_spec(shapes).n_layers));
  filled->derived.clear();
  filled->owned.clear();
  for (const auto& [name, view] : shapes.tensors) {
    Tensor tensor(DType::kF32, view.shape);
    if (view.shape.rank() > 1) {
      fill_normal(tensor.f32(), adds_to_residual(name) ? residual_deviation : deviation, seed,
                  hash_of(name));
    } else if (name.ends_with(".weight")) {
      std::ranges::fill(tensor.f32(), 1.0F);
    }
    filled->add(name, std::move(tensor));
  }
  return filled;
}

}  // namespace limpid
