// Unicode normalization form C (NFC), as the reference tokenizer's normalizer computes it.
//
// NFC writes equivalent texts alike: "e" + U+0301 (combining acute) becomes U+00E9 (é). It
// decomposes each character, sorts combining marks by class, and composes again.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/tokenizer_spec.h"

namespace limpid::unicode {

// Writes the NFC of `text` (UAX #15) to `out`. Only characters that are not is_nfc_inert()
// (unicode.h) may change; utf8proc decomposes and composes them. Returns false, with `out`
// unchanged, if `text` is certainly in NFC already. Bytes that are not UTF-8 stay unchanged and
// combine with nothing. Takes O(n log n) at worst.
bool normalize_nfc(std::string_view text, std::string& out);
// Like above, with working memory of the caller that is kept between calls.
bool normalize_nfc(std::string_view text, std::string& out, std::vector<int32_t>& points);

}  // namespace limpid::unicode

namespace limpid {

// Returns whether SentencePiece puts a space before a stretch of text. `has_space`: the stretch
// begins with one; `at_start`: the stretch is where the whole text begins.
bool puts_space(SpacePrefix prefix, bool has_space, bool at_start);

// Writes `text` to `out` with one space for each run of spaces and without spaces at both ends
// (SentencePiece's remove_extra_whitespaces). `text` is not a view of `out`.
void collapse_spaces(std::string_view text, std::string& out);

// Returns `text` normalized as `spec` says: NFC, or spaces as U+2581 with one put before the text.
// The result is `text` itself or a view of `buffer`. Changes by the pre-tokenizer (Metaspace) are
// not applied here.
std::string_view normalize_text(const TokenizerSpec& spec, std::string_view text,
                                std::string& buffer);

}  // namespace limpid
