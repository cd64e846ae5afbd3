// What kinds of quantised file there are, and which type each of their tensors gets: llama.cpp's
// mixtures, so that a file of one name has the same size and the same layout from both.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/tensor.h"

namespace limpid {

enum class FileMix : uint8_t {
  kPlain,  // matrices in the type that the name says
  kQ2_K,
  kQ3_K_S,
  kQ3_K_M,
  kQ3_K_L,
  kQ4_K_S,
  kQ4_K_M,
  kQ5_K_S,
  kQ5_K_M,
};

struct FileType {
  std::string_view name;  // "q4_k_m"
  int64_t id;             // general.file_type of GGUF
  DType dtype;            // of most matrices
  FileMix mix;
};

// "Q4_K_M", in any case; "q4_k" and "q5_k" mean the medium mix, "q3_k" too. Throws ArgumentError
// that lists the names.
const FileType& file_type_from_name(std::string_view name);
// "f32, f16, bf16, q8_0, …"
std::string file_type_names();
std::vector<std::string> file_type_list();

// What the mixtures look at.
struct MixFacts {
  std::string_view architecture;
  int64_t n_layers = 0;
  int64_t n_heads = 0;
  int64_t n_kv_heads = 0;
  bool tied_embeddings = false;  // the embedding is also the output matrix
  bool has_importance = false;
};

// Whether a tensor is one that files quantise: a matrix named *.weight that is no norm and no table
// of positions. Others stay in f32.
bool is_quantizable(std::string_view name, const Shape& shape);

struct MixedType {
  DType wanted;  // by the mixture
  DType dtype;   // what the row's length allows: a type of blocks that divide it
};

// The type of a quantisable tensor. `name` is GGUF's.
MixedType mixed_type(const FileType& file_type, const MixFacts& facts, std::string_view name,
                     const Shape& shape);

}  // namespace limpid
