// Unicode normalization form C, as the reference's normalizer does it.
#pragma once

#include <string>
#include <string_view>

namespace limpid::unicode {

// Whether `text` is certainly in NFC already: nothing in it decomposes, combines or reorders.
bool is_plain_nfc(std::string_view text);

// `text` in NFC (UAX #15) by the tables of unicode_tables.h. Bytes that are not UTF-8 stay as they
// are and combine with nothing. n log n at worst.
std::string normalize_nfc(std::string_view text);

}  // namespace limpid::unicode
