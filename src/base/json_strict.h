// What the JSON grammar leaves open and a file that is to be trusted may not do.
#pragma once

#include "base/json_file.h"

namespace limpid {

// Throws FormatError naming the place of the first key that occurs twice in one object, anywhere in
// `file`: parsers differ in which of the two they take.
void refuse_duplicate_keys(const JsonFile& file);

}  // namespace limpid
