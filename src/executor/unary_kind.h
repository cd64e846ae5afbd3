// The functions of one element.
#pragma once

#include <cstdint>

namespace limpid {

enum class UnaryKind : uint8_t {
  kSilu,      // x / (1 + e^-x)
  kGeluTanh,  // Hendrycks & Gimpel 2016, the tanh approximation that GPT-2 uses:
              // x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))
  kGeluErf,   // x Phi(x), Phi the normal distribution
  kRelu,      // max(x, 0)
};

}  // namespace limpid
