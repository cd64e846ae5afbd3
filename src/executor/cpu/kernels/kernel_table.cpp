#include "executor/cpu/kernels/kernels-inl.h"

namespace limpid::LIMPID_ISA {

extern const Kernels kKernels;
const Kernels kKernels = {
    .linear_f32 = linear_f32,
    .linear_f16 = linear_f16,
    .linear_bf16 = linear_bf16,
    .pack_tokens = pack_tokens,
    .attend_block = attend_block,
    .merge_partial = merge_partial,
    .finish_attention = finish_attention,
    .append_kv = append_kv,
    .rms_norm = rms_norm,
    .layer_norm = layer_norm,
    .rope = rope,
    .add = add_elements,
    .scale = scale_elements,
    .unary = {unary_silu, unary_gelu_tanh, unary_gelu_erf, unary_relu, unary_exp},
    .swiglu = swiglu,
    .f32_to_f16 = narrow_to_f16,
    .f16_to_f32 = widen_f16,
    .bf16_to_f32 = widen_bf16,
    .lanes_probe = lanes_probe,
};

}  // namespace limpid::LIMPID_ISA
