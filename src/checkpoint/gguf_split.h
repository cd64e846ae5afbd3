// Models split over several GGUF files: `NAME-00001-of-00003.gguf`, …, each with split.no (from 0),
// split.count and split.tensors.count (of all parts).
#pragma once

#include <span>
#include <string>

#include "checkpoint/gguf.h"

namespace limpid {

// Adds tensors of the file `path`. Throws FormatError when a name is there already.
void append_gguf_tensors(Checkpoint& checkpoint, const std::string& path,
                         std::span<const GgufTensor> tensors);

// Does nothing when `checkpoint` (its first file already in it) is not split. Otherwise opens the
// other parts beside it and checks that they belong together. Throws FormatError, UnsupportedError,
// ResourceError.
void open_other_gguf_parts(Checkpoint& checkpoint);

}  // namespace limpid
