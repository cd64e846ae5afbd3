// The kernels: one LIMPID_KERNEL(result, name, parameters) for each. A file that includes this
// one defines LIMPID_KERNEL first: kernels.h declares the table of pointers and the functions of
// one instruction set with it, and kernels/kernel_table.cpp fills the table. So the list has no
// include guard, and a new kernel is declared here once, for every instruction set.

// ---- linear -------------------------------------------------------------------------------------

// The product of activations and weights of task.type, as f32 or as bf16 (task.products).
LIMPID_KERNEL(void, linear_float, (const FloatLinearTask& task))

// x [n_tokens, cols] as linear_float reads it: tiles of as many tokens T as a register tile has
// (the last one may have fewer), each [cols / 16][T][16], the last columns padded with 0. So the
// kernel reads one stream, whatever the stride of x. With products of bf16, x is rounded to bf16
// and a tile is [cols / 32][T][32]. Packs tokens [token_begin, token_end), bounds being multiples
// of kFloatTokenGrain or the end.
LIMPID_KERNEL(void, pack_tokens,
              (DType products, const float* x, int64_t n_tokens, int64_t cols, int64_t token_begin,
               int64_t token_end, float* packed))

// The product of int8 activations and packed weights, of task.dtype.
LIMPID_KERNEL(void, linear_quantized, (const LinearTask& task))

// Quantises activations x [n_tokens, cols] to int8, with a scale per 16 columns. If a value of a
// token is not finite, every output of the token will be NaN. `out` has
// quantized_activations_bytes(n_tokens, cols) and is 64-byte aligned. Writes the slots of tokens
// [token_begin, token_end), and the padding after the last token; so threads can share the work.
// token_begin, and token_end unless it is n_tokens, is a multiple of 16.
LIMPID_KERNEL(void, quantize_activations,
              (const float* x, int64_t n_tokens, int64_t cols, int64_t token_begin,
               int64_t token_end, std::byte* out))

// ---- attention ----------------------------------------------------------------------------------

// One block's partial of every query that sees some of it; `block` counts from position 0. Queries
// that see none keep their entries. `partial` is overwritten.
LIMPID_KERNEL(void, attend_block,
              (const AttentionTile& tile, int64_t block, const KvBlockView& kv,
               const AttentionState& partial))

// Merges the partial of the next block into `state`, for queries [begin, end).
LIMPID_KERNEL(void, merge_partial,
              (const AttentionState& state, const AttentionState& partial, int64_t begin,
               int64_t end, int64_t head_dim))

// out[i] = accumulator[i] / sum, for one query.
LIMPID_KERNEL(void, finish_attention,
              (const float* accumulator, float sum, int64_t head_dim, float* out))

// Writes k, v [head_dim] of one head to `slot` (0 … 63) of its block.
LIMPID_KERNEL(void, append_kv,
              (const float* k, const float* v, int64_t slot, int64_t head_dim, bool k_is_f16,
               bool v_is_f16, std::byte* k_block, std::byte* v_block))

// ---- rows ---------------------------------------------------------------------------------------

LIMPID_KERNEL(void, rms_norm,
              (const float* x, const float* weight, int64_t n_rows, int64_t cols, float eps,
               float* y))

// `bias` may be null.
LIMPID_KERNEL(void, layer_norm,
              (const float* x, const float* weight, const float* bias, int64_t n_rows, int64_t cols,
               float eps, float* y))

// One token: n_heads heads of head_dim, cos and sin [n_rot / 2] of its position. `back`: by the
// opposite angles, for gradients.
LIMPID_KERNEL(void, rope,
              (const float* x, const float* cos, const float* sin, int64_t n_heads,
               int64_t head_dim, int64_t n_rot, bool back, float* y))

// ---- elements -----------------------------------------------------------------------------------

LIMPID_KERNEL(void, add_elements, (const float* a, const float* b, int64_t n, float* y))
LIMPID_KERNEL(void, scale_elements, (const float* x, float factor, int64_t n, float* y))
LIMPID_KERNEL(void, unary, (UnaryKind kind, const float* x, int64_t n, float* y))
LIMPID_KERNEL(void, swiglu, (const float* gate, const float* up, int64_t n, float* y))

// largest[i] of each kBestBlock elements of x [n]; infinity for a block with an element that is not
// finite.
LIMPID_KERNEL(void, block_largest, (const float* x, int64_t n, float* largest))

// ---- gradients ----------------------------------------------------------------------------------

// A matrix as multiply_packed reads its left operand: tiles of as many rows as a register tile
// has, each [depth][rows of a tile], rows beyond the last one 0.
LIMPID_KERNEL(void, pack_left, (const PackTask& task))

// y[m, j] = sum_k left[m, k] right[k, j]: lanes along j, and each element one chain of
// multiply-adds in order of k.
LIMPID_KERNEL(void, multiply_packed, (const MultiplyTask& task))

// sums[j] += sum_t x[t, j], in order of t, for columns [begin, end).
LIMPID_KERNEL(void, add_rows,
              (const float* x, int64_t n_rows, int64_t cols, int64_t begin, int64_t end,
               float* sums))

// dx of rms_norm and of layer_norm (`centred`), with the statistics of each row for
// norm_weight_gradient.
LIMPID_KERNEL(void, norm_gradient, (const NormGradientTask& task))
// dweight[j] += sum_t dy[t, j] * (x[t, j] - mean[t]) * inverse_root[t], for columns [begin, end).
LIMPID_KERNEL(void, norm_weight_gradient,
              (const NormGradientTask& task, int64_t begin, int64_t end, float* dweight))

// One sequence and one KV head with the query heads that share it.
LIMPID_KERNEL(void, attention_gradient, (const AttentionGradientTask& task))
// The forward op for the same sequence and heads.
LIMPID_KERNEL(void, attend_whole, (const AttentionGradientTask& task))

// To 16 bits, rounded to nearest even, and back; `type` is kF16 or kBF16.
LIMPID_KERNEL(void, narrow, (DType type, const float* x, int64_t n, uint16_t* y))
LIMPID_KERNEL(void, widen, (DType type, const uint16_t* x, int64_t n, float* y))

LIMPID_KERNEL(void, unary_gradient,
              (UnaryKind kind, const float* x, const float* dy, int64_t n, float* dx))
LIMPID_KERNEL(void, swiglu_gradient,
              (const float* gate, const float* up, const float* dy, int64_t n, float* dgate,
               float* dup))

// Replaces each of x [n] by exp(scale * x - largest), with the largest of scale * x; scale > 0.
// Returns the largest and the sum of the results.
LIMPID_KERNEL(SoftmaxSums, exponentials, (float* x, int64_t n, float scale))

// ---- limits of the machine ----------------------------------------------------------------------

// Independent multiply-adds on registers. Return how many they did; their time is the caller's to
// take. `fma_peak`: of f32. `bf16_peak`: of pairs of bf16. `dot4_peak_nibble` and `dot4_peak_byte`:
// of the int8 product that linear_quantized is made of, for codes of 4 and of 8 bits.
LIMPID_KERNEL(int64_t, fma_peak, (int64_t rounds))
LIMPID_KERNEL(int64_t, bf16_peak, (int64_t rounds))
LIMPID_KERNEL(int64_t, dot4_peak_nibble, (int64_t rounds))
LIMPID_KERNEL(int64_t, dot4_peak_byte, (int64_t rounds))

// Reads n_bytes (rounded down to whole lines of every stream) as `n_streams` (1, 2 or 4) streams
// side by side, and prefetches `ahead` bytes ahead (0: not at all). Returns a sum of what it read.
LIMPID_KERNEL(int64_t, read_streams,
              (const std::byte* data, int64_t n_bytes, int n_streams, int64_t ahead))

#undef LIMPID_KERNEL
