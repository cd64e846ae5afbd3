// Builds programs from the texts of the kernels, which the build embeds in the library.
//
// A program begins with definitions that choose a variant (the type of a weight, of the cache).
// kernels/dialect.h follows, then the files of its kernels. The kernels of a program are used
// together, so that only what a model needs is compiled: the ops without weights, embed and linear
// for each type of weights that the model has, and attention for one type of keys and of values.
#pragma once

#include <vector>

#include "executor/gpu/gpu_api.h"
#include "tensor/dtype.h"

namespace limpid::gpu {

// The ops without weights of the device's own layout: add, rms_norm, rope, top_k, …
ProgramSource op_program();
// embed, `linear` in f32, and for quantised types pack.
ProgramSource matrix_program(DType dtype);
// `linear` on tensor cores, and what makes halves of its operands.
ProgramSource tensor_program(DType dtype);
// Whether matrix_program knows the type; others are decoded before they are loaded.
bool has_matrix_program(DType dtype);
// Attention in f32. kF16 or kF32 each; `rows` outputs of attend share what a group reads.
inline constexpr int kAttendRows[] = {1, 4, 8, 16};
ProgramSource attention_program(DType k_dtype, DType v_dtype, int rows);
// Attention on tensor cores.
ProgramSource tensor_attention_program(DType k_dtype, DType v_dtype, int64_t head_dim);
// Whether there are such kernels for heads of a size: multiples of 16 up to 128.
bool has_tensor_attention(int64_t head_dim);

// Every program that there is, with tensor_attention_program for some sizes of heads.
std::vector<ProgramSource> all_programs();

}  // namespace limpid::gpu
