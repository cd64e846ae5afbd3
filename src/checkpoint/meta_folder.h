// A model as Meta releases it: params.json, consolidated.00.pth and further shards, and
// tokenizer.model. docs/formats/torch.md
#pragma once

#include <string>

#include "checkpoint/checkpoint.h"

namespace limpid {

// Whether consolidated.00.pth lies in the folder.
bool looks_like_meta(const std::string& folder);

// params.json becomes metadata below `params.`, tokenizer.model an attachment. Of several shards,
// norms are taken from the first (they must be equal in all), and the parts of each matrix are
// promised as one (Checkpoint::derived). Throws FormatError, UnsupportedError, ResourceError, each
// saying which file is at fault.
Checkpoint open_meta_folder(const std::string& path);

}  // namespace limpid
