// Translates tensor names with a table of patterns. Each layout (Hugging Face, Meta, nanoGPT, …)
// supplies one table.
//
// Example: the rule {"h.{}.mlp.c_fc.weight", "blk.{}.ffn_up.weight", kTransposed} with the optional
// prefix "transformer." turns `transformer.h.3.mlp.c_fc.weight` [768, 3072] into
// `blk.3.ffn_up.weight` [3072, 768].
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "checkpoint/checkpoint.h"

namespace limpid {

enum class TensorTransform : uint8_t {
  kAsStored,
  kTransposed,  // GPT-2's Conv1D stores [in, out]
  kFirstOfOne,  // [1, rows, cols] is read as [rows, cols]
};

// A pair of names. `{}` matches the index of a block and is the same number in both names. `*` at
// the end matches `weight` and `bias`, and is the same word in both names.
struct NameRule {
  std::string_view theirs;                                 // "model.layers.{}.self_attn.q_proj.*"
  std::string_view ours;                                   // "blk.{}.attn_q.*"
  TensorTransform transform = TensorTransform::kAsStored;  // not of a bias
};

// A beginning that names may have in addition ("transformer."), or in place of another one.
struct OptionalPrefix {
  std::string_view prefix;
  std::string_view stands_for = {};
};

// A tensor that the layout's files contain and the model does not use: a table of angles, or a
// buffer that a module saves with its weights. Some buffers are recognised by name and shape
// together, because GPT-2's causal mask has the name of a bias, `attn.bias`.
struct UnusedRule {
  enum class Kind : uint8_t {
    kAny,
    kMask,    // [1, 1, n, n] of any type
    kNumber,  // a single one
  };
  std::string_view name;
  Kind kind = Kind::kAny;
};

// The names of one layout.
struct NameTable {
  std::span<const NameRule> rules;
  std::span<const UnusedRule> unused;
  std::span<const OptionalPrefix> optional_prefixes;
};

// If `name` matches `pattern`, returns the number in place of `{}` (0 if the pattern has no `{}`).
// Otherwise returns nothing. A number with leading zeros does not match.
std::optional<int64_t> match_name(std::string_view pattern, std::string_view name);

// Returns the layout's name for our tensor `ours`, used when writing that layout. Returns nothing
// if the table has no such tensor.
std::optional<std::string> their_name(const NameTable& table, std::string_view ours);

// The inverse: our name for the layout's tensor `theirs`, which may have optional prefixes. Returns
// nothing for a tensor that the table does not list.
std::optional<std::string> our_name(const NameTable& table, std::string_view theirs);

// Renames every tensor to our vocabulary and applies its transform. A transposition is only
// recorded (Checkpoint::derived) and computed when the tensor is read. Tensors that the table lists
// as unused go to Checkpoint::unused_tensors. Throws UnsupportedError for a tensor that the table
// does not list, FormatError when two tensors map to the same name or when a tensor cannot be
// transformed.
Checkpoint translate_names(Checkpoint checkpoint, const NameTable& table);

// The inverse, for writing: keeps the names of `canonical` but transposes the matrices that the
// layout stores as [in, out]. A quantised matrix becomes f16, because quantised blocks run along
// rows. The transposes are recorded in Checkpoint::derived; each is computed as a whole when it is
// read.
Checkpoint transposed_for(Checkpoint canonical, const NameTable& table);

}  // namespace limpid
