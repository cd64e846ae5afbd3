// How the codes of the quantised types become numbers: the formulas of blocks.h as a table, for all
// that reads codes.
//
// Everything here is static or a plain type. Kernels include this header and are compiled once for
// each instruction set, and the linker must not merge their copies of a function (docs/adr/0002).
#pragma once

#include "tensor/dtype.h"

namespace limpid {

// A number is scale * (code - zero), or scale * kIq4Levels[code], and plus a minimum where the type
// has one. Scales and minima are f16, for blocks of 32; or they are integers times an f16 of 256
// columns, and the minimum counts as negative.
struct CodeForm {
  int low_bits;         // of a code: 2, 4 or 8
  int high_bits;        // 0, 1 or 2
  int zero;             // subtracted from each code; with levels, from the level + 128
  bool scales_are_f16;  // else u8, or i8 without a minimum
  int scale_cols;       // columns that share a scale: 16 or 32
  bool has_minimum;
  bool has_levels = false;
};

// Of a quantised type.
static constexpr CodeForm code_form(DType dtype) {
  constexpr CodeForm kForms[] = {
      // in the order of DType
      {4, 0, 8, true, 32, false},          // Q4_0
      {4, 0, 0, true, 32, true},           // Q4_1
      {4, 1, 16, true, 32, false},         // Q5_0
      {4, 1, 0, true, 32, true},           // Q5_1
      {8, 0, 128, true, 32, false},        // Q8_0
      {2, 0, 0, false, 16, true},          // Q2_K
      {2, 1, 4, false, 16, false},         // Q3_K
      {4, 0, 0, false, 32, true},          // Q4_K
      {4, 1, 0, false, 32, true},          // Q5_K
      {4, 2, 32, false, 16, false},        // Q6_K
      {4, 0, 128, true, 32, false, true},  // IQ4_NL
      {4, 0, 128, false, 32, false, true}  // IQ4_XS
  };
  return kForms[static_cast<int>(dtype) - static_cast<int>(DType::kQ4_0)];
}

}  // namespace limpid
