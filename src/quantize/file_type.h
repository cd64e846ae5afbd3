// The kinds of quantised files, and the type that each of them gives to each tensor. The rules are
// llama.cpp's, so that a file of the same name has the same size and layout from both programs.
//
// A name such as Q4_K_M describes a mixture, not one type: tensors whose errors matter more get
// more bits. In Q4_K_M most matrices are Q4_K (4.5 bits per weight), the output matrix is Q6_K
// (6.56 bits), and V and ffn_down of about half of the layers are Q6_K. Norms, biases and position
// tables stay in f32.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/tensor.h"

namespace limpid {

enum class FileMix : uint8_t {
  kPlain,  // every matrix has the type of the name, but for a few rules
  kQ2_K,
  kQ3_K_M,
  kQ3_K_L,
  kQ4_K_S,
  kQ4_K_M,
  kQ5_K_M,
};

struct FileType {
  std::string_view name;  // "q4_k_m"
  int64_t id;             // general.file_type of GGUF
  DType dtype;            // of most matrices
  FileMix mix;
};

// Accepts any case: "Q4_K_M". "q3_k", "q4_k" and "q5_k" mean the medium mixture. Throws
// ArgumentError that lists the names.
const FileType& file_type_from_name(std::string_view name);
// "f32", "f16", "bf16", "q8_0", …
std::vector<std::string> file_type_list();

// The facts about a model that the mixtures depend on.
struct MixFacts {
  std::string_view architecture;
  int64_t n_layers = 0;
  int64_t n_heads = 0;
  int64_t n_kv_heads = 0;
  bool tied_embeddings = false;  // the embedding is also the output matrix
  bool has_importance = false;
};

// Returns true for a tensor that files quantise: a matrix named *.weight, except norms and tables
// of positions. Other tensors stay in f32.
bool is_quantizable(std::string_view name, const Shape& shape);

struct MixedType {
  DType wanted;  // the type that the mixture chooses
  DType dtype;   // `wanted`, or a type whose blocks divide the row
};

// Returns the type of a quantisable tensor. `name` is the GGUF name.
MixedType mixed_type(const FileType& file_type, const MixFacts& facts, std::string_view name,
                     const Shape& shape);

}  // namespace limpid
