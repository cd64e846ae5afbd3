// Determines the tokens that end an answer.
#pragma once

#include <vector>

#include "tokenizer/tokenizer_spec.h"

namespace limpid {

// Returns eos, eot and eom of the spec, and the control and user-defined tokens whose names
// llama.cpp treats as an end of generation (docs/tokenizers.md). Ascending ids.
std::vector<TokenId> find_stop_ids(const TokenizerSpec& spec);

}  // namespace limpid
