// A model as Meta releases it: params.json, consolidated.00.pth and more shards, and
// tokenizer.model. docs/formats/torch.md
#pragma once

#include <string>

#include "checkpoint/checkpoint.h"

namespace limpid {

// Whether `folder` contains consolidated.00.pth.
bool looks_like_meta(const std::string& folder);

// params.json becomes metadata below `params.`, tokenizer.model an attachment. When there are
// several shards, each has every tensor: norms are the same in all of them, and matrices are cut
// into parts. Norms are taken from the first shard after a comparison with the others; matrices
// become derived tensors that join their parts. Throws FormatError, UnsupportedError,
// ResourceError; each names the file at fault.
Checkpoint open_meta_folder(const std::string& path);

}  // namespace limpid
