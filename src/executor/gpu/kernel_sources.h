// The text of the kernels, embedded at build time, put together to programs.
//
// A program begins with definitions that choose a variant (the type of a weight, of the cache),
// then comes kernels/dialect.h, then the files of its kernels. A program has kernels that are used
// together, so that only what a model needs is compiled: the ops without weights, embed and linear
// for each type of weights that the model has, and attention for one type of keys and of values.
#pragma once

#include <vector>

#include "executor/gpu/gpu_api.h"
#include "tensor/dtype.h"

namespace limpid::gpu {

// add, scale, unary, swiglu, select_rows, rms_norm, layer_norm, rope, top_k.
ProgramSource op_program();
// embed, linear_one, linear_few, linear_many; for quantised types pack.
ProgramSource matrix_program(DType dtype);
// halve, tensor_few, tensor_some, tensor_many: `linear` on tensor cores.
ProgramSource tensor_program(DType dtype);
// Whether matrix_program knows the type; others are decoded before they are loaded.
bool has_matrix_program(DType dtype);
// append, attend, combine. kF16 or kF32 each; `rows` outputs of attend share what a group reads.
inline constexpr int kAttendRows[] = {1, 4, 8, 16};
ProgramSource attention_program(DType k_dtype, DType v_dtype, int rows);
// append, tensor_attend_few, tensor_attend, tensor_combine: attention on tensor cores.
ProgramSource tensor_attention_program(DType k_dtype, DType v_dtype, int64_t head_dim);
// Whether there are such kernels for heads of a size: multiples of 16 up to 128.
bool has_tensor_attention(int64_t head_dim);

// Every program that there is, with tensor_attention_program for some sizes of heads.
std::vector<ProgramSource> all_programs();

}  // namespace limpid::gpu
