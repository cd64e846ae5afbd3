#include "quantize/file_type.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "base/check.h"
#include "layouts/name_table.h"

namespace limpid {
namespace {

constexpr std::array kFileTypes = {
    FileType{"f32", 0, DType::kF32, FileMix::kPlain},
    FileType{"f16", 1, DType::kF16, FileMix::kPlain},
    FileType{"bf16", 32, DType::kBF16, FileMix::kPlain},
    FileType{"q8_0", 7, DType::kQ8_0, FileMix::kPlain},
    FileType{"q4_0", 2, DType::kQ4_0, FileMix::kPlain},
    FileType{"q4_1", 3, DType::kQ4_1, FileMix::kPlain},
    FileType{"q5_0", 8, DType::kQ5_0, FileMix::kPlain},
    FileType{"q5_1", 9, DType::kQ5_1, FileMix::kPlain},
    FileType{"iq4_nl", 25, DType::kIQ4_NL, FileMix::kPlain},
    FileType{"iq4_xs", 30, DType::kIQ4_XS, FileMix::kPlain},
    FileType{"q2_k", 10, DType::kQ2_K, FileMix::kQ2_K},
    FileType{"q3_k_s", 11, DType::kQ3_K, FileMix::kPlain},
    FileType{"q3_k_m", 12, DType::kQ3_K, FileMix::kQ3_K_M},
    FileType{"q3_k_l", 13, DType::kQ3_K, FileMix::kQ3_K_L},
    FileType{"q4_k_s", 14, DType::kQ4_K, FileMix::kQ4_K_S},
    FileType{"q4_k_m", 15, DType::kQ4_K, FileMix::kQ4_K_M},
    FileType{"q5_k_s", 16, DType::kQ5_K, FileMix::kPlain},
    FileType{"q5_k_m", 17, DType::kQ5_K, FileMix::kQ5_K_M},
    FileType{"q6_k", 18, DType::kQ6_K, FileMix::kPlain},
};

enum class Part : uint8_t { kOutput, kEmbedding, kValue, kAttentionOutput, kDown, kOther };

struct Place {
  Part part = Part::kOther;
  int64_t layer = 0;
};

Place place_of(std::string_view name) {
  static constexpr std::pair<std::string_view, Part> kPatterns[] = {
      {"output.weight", Part::kOutput},
      {"token_embd.weight", Part::kEmbedding},
      {"blk.{}.attn_v.weight", Part::kValue},
      {"blk.{}.attn_qkv.weight", Part::kValue},
      {"blk.{}.attn_output.weight", Part::kAttentionOutput},
      {"blk.{}.ffn_down.weight", Part::kDown},
  };
  for (const auto& [pattern, part] : kPatterns) {
    if (const auto layer = match_name(pattern, name)) return {part, *layer};
  }
  return {};
}

// Returns true for layers whose errors the rest of the model amplifies or cannot correct.
// llama.cpp's mixtures give them more bits: the first and the last eighth of the layers, and every
// third layer in between. With 32 layers: 0 to 3, then 6, 9, …, 27, then 28 to 31.
bool deserves_more(int64_t layer, int64_t n_layers) {
  return layer < n_layers / 8 || layer >= 7 * n_layers / 8 || (layer - n_layers / 8) % 3 == 2;
}

bool is_iq4(DType dtype) { return dtype == DType::kIQ4_NL || dtype == DType::kIQ4_XS; }

// The type of V. V has few rows when heads share it (grouped-query attention), so more bits cost
// little. The numbers below are llama.cpp's.
DType value_type(const FileType& type, const MixFacts& facts, int64_t layer) {
  using enum FileMix;
  const bool few_kv_heads = facts.n_kv_heads > 0 && facts.n_heads / facts.n_kv_heads >= 4;
  const bool is_medium = type.mix == kQ4_K_M || type.mix == kQ5_K_M;
  if (type.mix == kQ2_K) return few_kv_heads ? DType::kQ4_K : DType::kQ3_K;
  if (type.mix == kQ3_K_M) return layer < 2 ? DType::kQ5_K : DType::kQ4_K;
  if (type.mix == kQ3_K_L) return DType::kQ5_K;
  if (type.mix == kQ4_K_S) return layer < 4 ? DType::kQ5_K : DType::kQ4_K;
  if (is_medium && deserves_more(layer, facts.n_layers)) return DType::kQ6_K;
  return is_iq4(type.dtype) && few_kv_heads ? DType::kQ5_K : type.dtype;
}

// The type of ffn_down, whose errors go directly into the residual stream.
DType down_type(const FileType& type, const MixFacts& facts, int64_t layer) {
  using enum FileMix;
  const bool first_eighth = layer < facts.n_layers / 8;
  const bool is_medium = type.mix == kQ4_K_M || type.mix == kQ5_K_M;
  if (type.mix == kQ2_K) return DType::kQ3_K;
  if (type.mix == kQ3_K_M) return layer < facts.n_layers / 16 ? DType::kQ5_K : DType::kQ4_K;
  if (type.mix == kQ3_K_L) return DType::kQ5_K;
  if (type.mix == kQ4_K_S) return first_eighth ? DType::kQ5_K : DType::kQ4_K;
  if (is_medium && deserves_more(layer, facts.n_layers)) return DType::kQ6_K;
  if (type.mix != kPlain || !first_eighth) return type.dtype;
  if (!facts.has_importance) return is_iq4(type.dtype) ? DType::kQ5_K : type.dtype;
  if (type.dtype == DType::kQ4_0) return DType::kQ4_1;
  return type.dtype == DType::kQ5_0 ? DType::kQ5_1 : type.dtype;
}

DType attention_output_type(const FileType& type) {
  if (type.mix == FileMix::kQ2_K) return DType::kQ3_K;
  if (type.mix == FileMix::kQ3_K_M) return DType::kQ4_K;
  return type.mix == FileMix::kQ3_K_L ? DType::kQ5_K : type.dtype;
}

// The type of the output matrix. An error there changes the choice of every token, so it has at
// least six bits.
DType output_type(const FileType& type, int64_t n_cols) {
  if (n_cols % dtype_info(type.dtype).block_size != 0) return DType::kQ8_0;
  return type.dtype == DType::kQ8_0 ? DType::kQ8_0 : DType::kQ6_K;
}

// Returns a type with blocks of 32 and about as many bits, for rows that blocks of 256 do not
// divide; f16 for rows that neither divides.
DType fallback(DType dtype, int64_t n_cols) {
  constexpr std::pair<DType, DType> kSmallerBlocks[] = {
      {DType::kIQ4_XS, DType::kIQ4_NL}, {DType::kQ2_K, DType::kQ4_0}, {DType::kQ3_K, DType::kQ4_0},
      {DType::kQ4_K, DType::kQ5_0},     {DType::kQ5_K, DType::kQ5_1}, {DType::kQ6_K, DType::kQ8_0},
  };
  const auto divides = [n_cols](DType d) { return n_cols % dtype_info(d).block_size == 0; };
  if (divides(dtype)) return dtype;
  const auto* smaller = std::ranges::find(kSmallerBlocks, dtype, &std::pair<DType, DType>::first);
  return smaller != std::end(kSmallerBlocks) && divides(smaller->second) ? smaller->second
                                                                         : DType::kF16;
}

// The type that the mixture chooses for the tensor of that name.
DType wanted_type(const FileType& type, const MixFacts& facts, std::string_view name,
                  int64_t n_cols) {
  if (!is_quantized(type.dtype)) return type.dtype;
  const auto [part, layer] = place_of(name);
  const bool is_output =
      part == Part::kOutput || (part == Part::kEmbedding && facts.tied_embeddings);
  if (is_output) return output_type(type, n_cols);
  if (part == Part::kDown) return down_type(type, facts, layer);
  if (part == Part::kAttentionOutput) return attention_output_type(type);
  if (part != Part::kValue) return type.dtype;
  const DType wanted = value_type(type, facts, layer);
  // With 80 layers (Llama 2 and 3 70B), eight heads share each row of V, so more bits cost little
  // and gain much. LLaMA 65B has 80 layers too, and a V for each head.
  const bool is_65b = facts.architecture == "llama" && facts.n_heads == facts.n_kv_heads;
  const bool gains_much =
      facts.n_layers == 80 && !is_65b && (wanted == DType::kQ3_K || wanted == DType::kQ4_K);
  return gains_much ? DType::kQ5_K : wanted;
}

}  // namespace

const FileType& file_type_from_name(std::string_view name) {
  std::string lower(name);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (lower == "q3_k" || lower == "q4_k" || lower == "q5_k") lower += "_m";
  const auto* found = std::ranges::find(kFileTypes, lower, &FileType::name);
  LIMPID_CHECK(ArgumentError, found != kFileTypes.end(), "unknown type '{}'; the types are {}",
               name, fmt::join(file_type_list(), ", "));
  return *found;
}

std::vector<std::string> file_type_list() {
  std::vector<std::string> names;
  names.reserve(std::size(kFileTypes));
  for (const FileType& type : kFileTypes) names.emplace_back(type.name);
  return names;
}

bool is_quantizable(std::string_view name, const Shape& shape) {
  if (shape.rank() < 2 || !name.ends_with("weight")) return false;
  return !name.ends_with("_norm.weight") && name != "position_embd.weight" &&
         name != "token_types.weight";
}

MixedType mixed_type(const FileType& type, const MixFacts& facts, std::string_view name,
                     const Shape& shape) {
  const DType wanted = wanted_type(type, facts, name, shape.cols());
  return {wanted, fallback(wanted, shape.cols())};
}

}  // namespace limpid
