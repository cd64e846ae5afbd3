// Reads a vocabulary from JSON: {"piece": id, …}.
#pragma once

#include <string_view>
#include <unordered_map>

#include "base/json_file.h"
#include "tokenizer/tokenizer_spec.h"

namespace limpid {

using PieceIds = std::unordered_map<std::string_view, TokenId>;  // views into the JsonFile

// Fills `pieces` and `types` of the spec (kNormal; kUnused for gaps in the ids) and returns the ids
// by piece. Throws FormatError for duplicate pieces or ids, and for ids far beyond the number of
// pieces.
PieceIds read_vocabulary(const JsonPlace& place, TokenizerSpec& spec);

}  // namespace limpid
