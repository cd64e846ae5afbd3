// Applies a tokenizer's normalizer to a text.
#pragma once

#include <string>
#include <string_view>

#include "tokenizer/tokenizer_spec.h"

namespace limpid {

// Returns `text` normalized as `spec` says: NFC, or spaces as U+2581 with one put before the text.
// The result is `text` itself or a view of `buffer`. Changes by the pre-tokenizer (Metaspace) are
// not applied here.
std::string_view normalize_text(const TokenizerSpec& spec, std::string_view text,
                                std::string& buffer);

}  // namespace limpid
