// Where PCRE2's general categories are not ours.
#pragma once

#include "tokenizer/code_point_set.h"

namespace limpid {

// PCRE2's tables are of an older Unicode than the references' (14 in Debian's 10.42).
struct CategoryDifference {
  unicode::CodePointSet missing;  // of these categories by our tables, not by PCRE2's
  unicode::CodePointSet extra;    // the other way about
};

// For the union of these categories (bits of unicode::Category). Asks the library that is linked;
// the first call takes some 50 ms.
CategoryDifference compare_categories(unicode::Properties categories);

// PCRE2's short name of a category.
const char* category_name(unicode::Category category);

}  // namespace limpid
