// Models that are split over several GGUF files: `NAME-00001-of-00003.gguf` and so on. Each part is
// a complete GGUF file and states split.no (from 0), split.count and split.tensors.count (the
// tensors of all parts). The metadata of the model is in the first part.
#pragma once

#include <span>
#include <string>

#include "checkpoint/gguf.h"

namespace limpid {

// Adds the tensors of the file `path` to `checkpoint`. Throws FormatError when a name is there
// already.
void append_gguf_tensors(Checkpoint& checkpoint, const std::string& path,
                         std::span<const GgufTensor> tensors);

// Opens the other parts of a split model and checks that they belong together. `checkpoint` holds
// its first file already; nothing happens when that file is not split. Throws FormatError,
// UnsupportedError, ResourceError.
void open_other_gguf_parts(Checkpoint& checkpoint);

}  // namespace limpid
