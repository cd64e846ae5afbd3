// What a tokenizer's normalizer makes of a text.
#pragma once

#include <string>
#include <string_view>

#include "tokenizer/tokenizer_spec.h"

namespace limpid {

// `text` as the normalizer of `spec` leaves it: NFC, or spaces as U+2581 with one put before. Gives
// `text` itself, or a view of `buffer`. What the pre-tokenizer changes (Metaspace) is not done
// here.
std::string_view normalize_text(const TokenizerSpec& spec, std::string_view text,
                                std::string& buffer);

}  // namespace limpid
