// Unicode normalization form C, as the reference's normalizer does it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace limpid::unicode {

// Puts `text` into NFC (UAX #15) by the tables of unicode_tables.h. False, and `out` unchanged, if
// `text` certainly is in NFC already. Bytes that are not UTF-8 stay as they are and combine with
// nothing. n log n at worst.
bool normalize_nfc(std::string_view text, std::string& out);
// The same with work space of the caller's, which is kept.
bool normalize_nfc(std::string_view text, std::string& out, std::vector<char32_t>& points);

}  // namespace limpid::unicode
