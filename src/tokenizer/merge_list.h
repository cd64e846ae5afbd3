// Merges as a list, for layouts that have no other order, and back.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tokenizer/tokenizer_spec.h"

namespace limpid {

// The list ("left right", best first) that stands for the order of `spec`: its own, or, for ranks
// and scores, every way to make a piece from two, the pieces in that order (those of one score by
// id); ways to make one piece are in the order of the ids of their parts, as in Hugging Face's
// converters. A list gives each of these ways a place of its own where ranks and scores have
// equals, of which the leftmost merges first; so both part where one piece can be made in two ways
// at overlapping places of a text.
std::vector<std::string> merge_list(const TokenizerSpec& spec);

// How many pieces that others merge into have a score that another such piece has too: there a list
// decides by id, SentencePiece by place. In Llama 2's these are the runs of spaces, which come out
// alike.
size_t n_equal_scores(const TokenizerSpec& spec);

// Scores (one for each piece, 0 for those that nothing merges into) by which SentencePiece merges
// as `spec.merges` says; nothing if no scores do: the list leaves out a way to make a piece, or
// puts another piece between two ways to make one.
std::optional<std::vector<float>> merge_scores(const TokenizerSpec& spec);

}  // namespace limpid
