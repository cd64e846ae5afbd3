// The primitives that kernels are made of, as functions that a test can call: probe.cpp is compiled
// once for each instruction set, with the flags of its kernels.
#pragma once

#include <cstdint>

namespace limpid {

struct Probe {
  // Each primitive of lanes-inl.h on 16 floats a, b, c: 16 results per primitive.
  void (*lanes)(const float* a, const float* b, const float* c, float* out);
  void (*exp)(const float* x, int64_t n, float* y);
  void (*f32_to_f16)(const float* x, int64_t n, uint16_t* y);
  void (*f16_to_f32)(const uint16_t* x, int64_t n, float* y);
  void (*bf16_to_f32)(const uint16_t* x, int64_t n, float* y);
  // acc[r] += sum_i codes[4r + i] * x[i] for 16 rows, as linear_quantized computes it for codes up
  // to 255.
  void (*dot4)(int32_t* acc, const uint8_t* codes, const int8_t* x);
};
inline constexpr int kLanesProbeResults = 14;

}  // namespace limpid
