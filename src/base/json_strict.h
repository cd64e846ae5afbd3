// Stricter rules than those of the JSON grammar, for files that must be trusted.
#pragma once

#include "base/json_file.h"

namespace limpid {

// Throws FormatError, which names the place, for the first key that occurs twice in one object,
// anywhere in `file`. Parsers differ in which of the two values they use, so two programs could
// read two different files.
void refuse_duplicate_keys(const JsonFile& file);

}  // namespace limpid
