// Which tokens end an answer.
#pragma once

#include <vector>

#include "tokenizer/tokenizer_spec.h"

namespace limpid {

// eos, eot and eom of the spec, and its control and user-defined tokens whose names llama.cpp takes
// for an end of generation (docs/tokenizers.md). Ascending ids.
std::vector<TokenId> find_stop_ids(const TokenizerSpec& spec);

}  // namespace limpid
