#include "layouts/gpt2_names.h"

#include <array>

namespace limpid {
namespace {

constexpr TensorTransform kTransposed = TensorTransform::kTransposed;

constexpr std::array kConv1dRules = {
    NameRule{"wte.weight", "token_embd.weight"},
    NameRule{"wpe.weight", "position_embd.weight"},
    NameRule{"h.{}.ln_1.weight", "blk.{}.attn_norm.weight"},
    NameRule{"h.{}.ln_1.bias", "blk.{}.attn_norm.bias"},
    NameRule{"h.{}.attn.c_attn.weight", "blk.{}.attn_qkv.weight", kTransposed},
    NameRule{"h.{}.attn.c_attn.bias", "blk.{}.attn_qkv.bias"},
    NameRule{"h.{}.attn.c_proj.weight", "blk.{}.attn_output.weight", kTransposed},
    NameRule{"h.{}.attn.c_proj.bias", "blk.{}.attn_output.bias"},
    NameRule{"h.{}.ln_2.weight", "blk.{}.ffn_norm.weight"},
    NameRule{"h.{}.ln_2.bias", "blk.{}.ffn_norm.bias"},
    NameRule{"h.{}.mlp.c_fc.weight", "blk.{}.ffn_up.weight", kTransposed},
    NameRule{"h.{}.mlp.c_fc.bias", "blk.{}.ffn_up.bias"},
    NameRule{"h.{}.mlp.c_proj.weight", "blk.{}.ffn_down.weight", kTransposed},
    NameRule{"h.{}.mlp.c_proj.bias", "blk.{}.ffn_down.bias"},
    NameRule{"ln_f.weight", "output_norm.weight"},
    NameRule{"ln_f.bias", "output_norm.bias"},
    NameRule{"lm_head.weight", "output.weight"},
};

constexpr std::array kLinearRules = {
    NameRule{"wte.weight", "token_embd.weight"},
    NameRule{"tok_emb.weight", "token_embd.weight"},
    NameRule{"wpe.weight", "position_embd.weight"},
    NameRule{"pos_emb.weight", "position_embd.weight"},
    NameRule{"pos_emb", "position_embd.weight", TensorTransform::kFirstOfOne},
    // nanoGPT, minGPT since 2022
    NameRule{"h.{}.ln_1.weight", "blk.{}.attn_norm.weight"},
    NameRule{"h.{}.ln_1.bias", "blk.{}.attn_norm.bias"},
    NameRule{"h.{}.attn.c_attn.weight", "blk.{}.attn_qkv.weight"},
    NameRule{"h.{}.attn.c_attn.bias", "blk.{}.attn_qkv.bias"},
    NameRule{"h.{}.attn.c_proj.weight", "blk.{}.attn_output.weight"},
    NameRule{"h.{}.attn.c_proj.bias", "blk.{}.attn_output.bias"},
    NameRule{"h.{}.ln_2.weight", "blk.{}.ffn_norm.weight"},
    NameRule{"h.{}.ln_2.bias", "blk.{}.ffn_norm.bias"},
    NameRule{"h.{}.mlp.c_fc.weight", "blk.{}.ffn_up.weight"},
    NameRule{"h.{}.mlp.c_fc.bias", "blk.{}.ffn_up.bias"},
    NameRule{"h.{}.mlp.c_proj.weight", "blk.{}.ffn_down.weight"},
    NameRule{"h.{}.mlp.c_proj.bias", "blk.{}.ffn_down.bias"},
    // the same modules in a list named `blocks`
    NameRule{"blocks.{}.ln_1.weight", "blk.{}.attn_norm.weight"},
    NameRule{"blocks.{}.ln_1.bias", "blk.{}.attn_norm.bias"},
    NameRule{"blocks.{}.attn.c_attn.weight", "blk.{}.attn_qkv.weight"},
    NameRule{"blocks.{}.attn.c_attn.bias", "blk.{}.attn_qkv.bias"},
    NameRule{"blocks.{}.attn.c_proj.weight", "blk.{}.attn_output.weight"},
    NameRule{"blocks.{}.attn.c_proj.bias", "blk.{}.attn_output.bias"},
    NameRule{"blocks.{}.ln_2.weight", "blk.{}.ffn_norm.weight"},
    NameRule{"blocks.{}.ln_2.bias", "blk.{}.ffn_norm.bias"},
    NameRule{"blocks.{}.mlp.c_fc.weight", "blk.{}.ffn_up.weight"},
    NameRule{"blocks.{}.mlp.c_fc.bias", "blk.{}.ffn_up.bias"},
    NameRule{"blocks.{}.mlp.c_proj.weight", "blk.{}.ffn_down.weight"},
    NameRule{"blocks.{}.mlp.c_proj.bias", "blk.{}.ffn_down.bias"},
    // minGPT of 2020: separate Q, K and V; the MLP is a Sequential
    NameRule{"blocks.{}.ln1.weight", "blk.{}.attn_norm.weight"},
    NameRule{"blocks.{}.ln1.bias", "blk.{}.attn_norm.bias"},
    NameRule{"blocks.{}.attn.query.weight", "blk.{}.attn_q.weight"},
    NameRule{"blocks.{}.attn.query.bias", "blk.{}.attn_q.bias"},
    NameRule{"blocks.{}.attn.key.weight", "blk.{}.attn_k.weight"},
    NameRule{"blocks.{}.attn.key.bias", "blk.{}.attn_k.bias"},
    NameRule{"blocks.{}.attn.value.weight", "blk.{}.attn_v.weight"},
    NameRule{"blocks.{}.attn.value.bias", "blk.{}.attn_v.bias"},
    NameRule{"blocks.{}.attn.proj.weight", "blk.{}.attn_output.weight"},
    NameRule{"blocks.{}.attn.proj.bias", "blk.{}.attn_output.bias"},
    NameRule{"blocks.{}.ln2.weight", "blk.{}.ffn_norm.weight"},
    NameRule{"blocks.{}.ln2.bias", "blk.{}.ffn_norm.bias"},
    NameRule{"blocks.{}.mlp.0.weight", "blk.{}.ffn_up.weight"},
    NameRule{"blocks.{}.mlp.0.bias", "blk.{}.ffn_up.bias"},
    NameRule{"blocks.{}.mlp.2.weight", "blk.{}.ffn_down.weight"},
    NameRule{"blocks.{}.mlp.2.bias", "blk.{}.ffn_down.bias"},
    NameRule{"ln_f.weight", "output_norm.weight"},
    NameRule{"ln_f.bias", "output_norm.bias"},
    NameRule{"lm_head.weight", "output.weight"},
    NameRule{"head.weight", "output.weight"},
};

// Causal masks, and the number that represents minus infinity in them.
constexpr std::array kBuffers = {
    BufferRule{"h.{}.attn.bias"},
    BufferRule{"h.{}.attn.mask"},
    BufferRule{"h.{}.attn.masked_bias", false},
    BufferRule{"blocks.{}.attn.bias"},
    BufferRule{"blocks.{}.attn.mask"},
};
constexpr std::array<std::string_view, 3> kPrefixes = {"_orig_mod.", "module.", "transformer."};

}  // namespace

constinit const NameTable kGpt2Conv1dNames{kConv1dRules, {}, kPrefixes, kBuffers};
constinit const NameTable kGpt2LinearNames{kLinearRules, {}, kPrefixes, kBuffers};

}  // namespace limpid
