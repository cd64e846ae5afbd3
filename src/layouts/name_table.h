// A layout's names for the tensors of a decoder, and what has to be done to each.
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
  kTransposed,  // GPT-2's Conv1D keeps [in, out]
  kFirstOfOne,  // [1, rows, cols] is taken as [rows, cols]
};

// `{}` stands for the number of a block, the same in both names.
struct NameRule {
  std::string_view theirs;  // "model.layers.{}.self_attn.q_proj.weight"
  std::string_view ours;    // "blk.{}.attn_q.weight"
  TensorTransform transform = TensorTransform::kAsStored;
};

// A buffer that a module saves beside its weights. Known by name and shape together: GPT-2 calls
// its causal mask `attn.bias`.
struct BufferRule {
  std::string_view name;
  bool is_mask = true;  // [1, 1, n, n] of any type; otherwise a single number
};

struct NameTable {
  std::span<const NameRule> rules;
  // Tensors that such files hold and that the model does not use: mask buffers, tables of angles.
  std::span<const std::string_view> unused;
  // Beginnings that a name may carry or not: "transformer.", "_orig_mod.".
  std::span<const std::string_view> optional_prefixes;
  std::span<const BufferRule> buffers{};  // unused too
};

// The number that `name` has where `pattern` has `{}` (0 if it has none), if the rest is equal.
std::optional<int64_t> match_name(std::string_view pattern, std::string_view name);
// `pattern` with `{}` replaced.
std::string name_of_block(std::string_view pattern, int64_t block);

// The table's own name of our tensor, for whoever writes that layout; nothing if it has none.
std::optional<std::string> their_name(const NameTable& table, std::string_view ours);

// Gives every tensor its name in our vocabulary and applies the transforms, which only are promised
// (Checkpoint::derived). Those of `unused` go to Checkpoint::unused_tensors. Throws
// UnsupportedError for a tensor that the table does not know, FormatError for two that mean the
// same one or cannot be transformed.
Checkpoint translate_names(Checkpoint checkpoint, const NameTable& table);

// The other way: `canonical`, its names kept, with matrices as files of that layout keep them; one
// that is quantised becomes f16. They only are promised, each made as a whole when it is read.
Checkpoint transposed_for(Checkpoint canonical, const NameTable& table);

}  // namespace limpid
