// Converts between a list of merges and the other merge orders (ranks, scores).
//
// Example: ranks for the pieces a, b, c, ab (rank 3), bc (4), abc (5), where the ids are the ranks.
// The list is "a b", "b c", then both ways to form abc in the order of the ids of their parts: "a
// bc", "ab c".
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tokenizer/tokenizer_spec.h"

namespace limpid {

// Returns a merge list ("left right", best first) for the order of `spec`. If the spec has a list,
// returns that list. For ranks and scores, the list contains every way to form a piece from two
// pieces, ordered by rank or score; pieces of equal score are ordered by id, and ways to form the
// same piece by the ids of their parts, as in Hugging Face's converters.
//
// A list gives each way a rank of its own, but with ranks and scores all ways to form a piece are
// equal, and the leftmost merges first. The two therefore differ if a piece can be formed in two
// ways at overlapping places of a text.
std::vector<std::string> merge_list(const TokenizerSpec& spec);

// Returns the number of merged pieces whose score equals that of another merged piece. For these, a
// list decides by id, SentencePiece by position. In Llama 2's vocabulary they are the runs of
// spaces, for which both give the same result.
size_t n_equal_scores(const TokenizerSpec& spec);

// Returns scores (one per piece, 0 for pieces that are not merged) with which SentencePiece merges
// in the order of `spec.merges`. Returns nothing if no scores do: if the list omits a way to form a
// piece, or has another piece between two ways to form one.
std::optional<std::vector<float>> merge_scores(const TokenizerSpec& spec);

}  // namespace limpid
