// The differences between PCRE2's general categories and ours.
#pragma once

#include "tokenizer/code_point_set.h"

namespace limpid {

// PCRE2's tables come from an older Unicode version (14 in Debian's 10.42) than those of the
// reference tokenizers.
struct CategoryDifference {
  unicode::CodePointSet missing;  // in these categories by our tables but not by PCRE2's
  unicode::CodePointSet extra;    // the reverse
};

// Compares the union of these categories (bits of unicode::Category). Queries the linked library;
// the first call takes about 50 ms.
CategoryDifference compare_categories(unicode::Properties categories);

// Returns PCRE2's short name of a category.
const char* category_name(unicode::Category category);

}  // namespace limpid
