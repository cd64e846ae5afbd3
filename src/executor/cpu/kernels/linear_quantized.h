// The quantised kernels of one instruction set, by name; linear_quantized.cpp makes their table.
#pragma once

#include "executor/cpu/quantized_kernels.h"

namespace limpid::LIMPID_ISA {

void quantize_activations(const QuantizeTask& task);

void linear_q4_0(const LinearTask& task);
void linear_q4_1(const LinearTask& task);
void linear_q4_k(const LinearTask& task);
void linear_q2_k(const LinearTask& task);
void linear_q8_0(const LinearTask& task);
void linear_q5_1(const LinearTask& task);
void linear_q5_k(const LinearTask& task);
void linear_iq4_xs(const LinearTask& task);
void linear_q6_k(const LinearTask& task);

extern const QuantizedKernels kQuantizedKernels;

}  // namespace limpid::LIMPID_ISA
