// Low-rank adapters (LoRA; Hu et al. 2021, arXiv:2106.09685): the matrix W [out, in] of a model
// becomes W + scale * B A, with A [r, in], B [out, r] and a rank r of 4 to 64.
//
// In a canonical checkpoint the adapter number i of the tensor NAME is two more tensors,
// NAME.lora_a.i and NAME.lora_b.i, and the key lora.i.scale. The rows of B are in half-split order
// (tensor/row_order.h). So whatever reads, trains or merges a checkpoint meets adapters as tensors.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "checkpoint/checkpoint.h"

namespace limpid {

// The adapters of a checkpoint are numbered from 0.
int64_t n_lora_adapters(const Checkpoint& canonical);
std::string lora_scale_key(int64_t adapter);
// "NAME.lora_a.i" and "NAME.lora_b.i".
struct LoraNames {
  std::string a;
  std::string b;
};
LoraNames lora_names(std::string_view tensor, int64_t adapter);
// Whether a tensor is part of an adapter.
bool is_lora_tensor(std::string_view name);

// Adds an adapter in PEFT's layout, a folder with adapter_config.json and
// adapter_model.safetensors. `scale` multiplies the adapter's own scale (alpha / r). The
// checkpoint's architecture decides how PEFT's names are read. Throws FormatError, UnsupportedError
// for an adapter of another kind or model and for an option that would change the result.
void add_lora_adapter(Checkpoint& canonical, const std::string& path, double scale = 1);
// "PATH" or "PATH=SCALE". The name of an existing folder is a path, even if it is "rate=0.5".
// Throws ArgumentError for a folder with a scale that is not a finite number.
struct LoraSource {
  std::string path;
  double scale = 1;
};
LoraSource read_lora_source(const std::string& text);
// Adds each of these adapters.
void add_lora_adapters(Checkpoint& canonical, std::span<const std::string> adapters);

// PEFT's name of the module whose matrix is `tensor`:
// "base_model.model.model.layers.0.self_attn.q_proj".
std::string peft_module_name(const Checkpoint& canonical, std::string_view tensor);
// The last part of it, by which PEFT's configuration names what it changes: "q_proj".
std::string peft_target(const Checkpoint& canonical, std::string_view tensor);

// The rows of B are in the order of the Q or K that the class of `transformers` has. Returns the
// size of a head if those rows are interleaved pairs (ERNIE 4.5), and 0 if they are half-split or
// if `tensor` is another matrix.
int64_t peft_paired_head_dim(const Checkpoint& canonical, std::string_view tensor);
// The rows of `b` half-split, from interleaved pairs, or the other way round. The pairs are those
// of the whole head.
Tensor with_rows_in_order(const TensorView& b, RowOrder order, int64_t head_dim);

}  // namespace limpid
