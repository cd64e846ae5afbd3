// A vocabulary as JSON: {"piece": id, …}.
#pragma once

#include <string_view>
#include <unordered_map>

#include "base/json_file.h"
#include "tokenizer/tokenizer_spec.h"

namespace limpid {

using PieceIds = std::unordered_map<std::string_view, TokenId>;  // views into the JsonFile

// Fills `pieces` and `types` (kNormal; kUnused where the ids have gaps) of the spec, and gives the
// ids by piece. Throws FormatError for pieces or ids that are there twice, and for ids that are far
// beyond the number of pieces.
PieceIds read_vocabulary(const JsonPlace& place, TokenizerSpec& spec);

}  // namespace limpid
