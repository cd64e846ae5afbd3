#include "layouts/gpt2_names.h"

#include <array>

namespace limpid {
namespace {

constexpr TensorTransform kTransposed = TensorTransform::kTransposed;

constexpr std::array kConv1dRules = {
    NameRule{"wte.weight", "token_embd.weight"},
    NameRule{"wpe.weight", "position_embd.weight"},
    NameRule{"h.{}.ln_1.*", "blk.{}.attn_norm.*"},
    NameRule{"h.{}.attn.c_attn.*", "blk.{}.attn_qkv.*", kTransposed},
    NameRule{"h.{}.attn.c_proj.*", "blk.{}.attn_output.*", kTransposed},
    NameRule{"h.{}.ln_2.*", "blk.{}.ffn_norm.*"},
    NameRule{"h.{}.mlp.c_fc.*", "blk.{}.ffn_up.*", kTransposed},
    NameRule{"h.{}.mlp.c_proj.*", "blk.{}.ffn_down.*", kTransposed},
    NameRule{"ln_f.*", "output_norm.*"},
    NameRule{"lm_head.weight", "output.weight"},
};

constexpr std::array kLinearRules = {
    NameRule{"wte.weight", "token_embd.weight"},
    NameRule{"tok_emb.weight", "token_embd.weight"},
    NameRule{"wpe.weight", "position_embd.weight"},
    NameRule{"pos_emb.weight", "position_embd.weight"},
    NameRule{"pos_emb", "position_embd.weight", TensorTransform::kFirstOfOne},
    // nanoGPT, minGPT since 2022
    NameRule{"h.{}.ln_1.*", "blk.{}.attn_norm.*"},
    NameRule{"h.{}.attn.c_attn.*", "blk.{}.attn_qkv.*"},
    NameRule{"h.{}.attn.c_proj.*", "blk.{}.attn_output.*"},
    NameRule{"h.{}.ln_2.*", "blk.{}.ffn_norm.*"},
    NameRule{"h.{}.mlp.c_fc.*", "blk.{}.ffn_up.*"},
    NameRule{"h.{}.mlp.c_proj.*", "blk.{}.ffn_down.*"},
    // minGPT of 2020: separate Q, K and V; the MLP is a Sequential
    NameRule{"h.{}.ln1.*", "blk.{}.attn_norm.*"},
    NameRule{"h.{}.attn.query.*", "blk.{}.attn_q.*"},
    NameRule{"h.{}.attn.key.*", "blk.{}.attn_k.*"},
    NameRule{"h.{}.attn.value.*", "blk.{}.attn_v.*"},
    NameRule{"h.{}.attn.proj.*", "blk.{}.attn_output.*"},
    NameRule{"h.{}.ln2.*", "blk.{}.ffn_norm.*"},
    NameRule{"h.{}.mlp.0.*", "blk.{}.ffn_up.*"},
    NameRule{"h.{}.mlp.2.*", "blk.{}.ffn_down.*"},
    NameRule{"ln_f.*", "output_norm.*"},
    NameRule{"lm_head.weight", "output.weight"},
    NameRule{"head.weight", "output.weight"},
};

// Causal masks, and the number that represents minus infinity in them.
constexpr std::array kBuffers = {
    BufferRule{"h.{}.attn.bias"},
    BufferRule{"h.{}.attn.mask"},
    BufferRule{"h.{}.attn.masked_bias", false},
};
constexpr std::array<OptionalPrefix, 3> kPrefixes = {
    {{"_orig_mod."}, {"module."}, {"transformer."}}};
// Some scripts name the list of blocks `blocks` and not `h`.
constexpr std::array<OptionalPrefix, 4> kLinearPrefixes = {
    {{"_orig_mod."}, {"module."}, {"transformer."}, {"blocks.", "h."}}};

}  // namespace

constinit const NameTable kGpt2Conv1dNames{kConv1dRules, {}, kPrefixes, kBuffers};
constinit const NameTable kGpt2LinearNames{kLinearRules, {}, kLinearPrefixes, kBuffers};

}  // namespace limpid
