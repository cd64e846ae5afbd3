// Tokenizers that need no training: a token for each byte, or for each character of a text.
#pragma once

#include <string_view>

#include "tokenizer/tokenizer_spec.h"

namespace limpid {

// Returns the tokenizer of the 256 bytes, and of <|endoftext|>, which ends a document.
TokenizerSpec byte_tokenizer();

// Returns the tokenizer of the characters that occur in `text`, in the order of their code points,
// as in nanoGPT. Characters of several bytes are merged from their bytes, which follow as tokens of
// their own. Other characters have no token and are left out when a text is encoded. Throws
// ArgumentError for text that is empty or not UTF-8.
TokenizerSpec character_tokenizer(std::string_view text);

}  // namespace limpid
