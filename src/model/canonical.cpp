#include "model/canonical.h"

#include <fmt/format.h>

#include "limpid/error.hpp"
#include "model/hugging_face.h"
#include "model/meta.h"
#include "model/state_dict.h"
#include "model/tokenizer_from_metadata.h"

namespace limpid {

Checkpoint to_canonical(Checkpoint checkpoint) {
  if (checkpoint.naming == Naming::kGguf) return checkpoint;
  if (checkpoint.naming == Naming::kHuggingFace) return canonical_from_hugging_face(checkpoint);
  if (checkpoint.naming == Naming::kMeta || has_meta_names(checkpoint))
    return meta_to_canonical(std::move(checkpoint));
  if (checkpoint.naming == Naming::kStateDict)
    return canonical_from_state_dict(std::move(checkpoint));
  throw UnsupportedError(fmt::format("{}: the names of a {} checkpoint are not known",
                                     checkpoint.path, checkpoint.format));
}

Checkpoint open_model_files(const ModelFiles& files) {
  const TokenizerFiles tokenizer = find_tokenizer_files(files.tokenizer_path);
  if (!has_tokenizer(tokenizer))
    return to_canonical(open_checkpoint(files.path, files.tokenizer_path));
  Checkpoint checkpoint = to_canonical(open_checkpoint(files.path));
  replace_tokenizer(checkpoint, tokenizer);
  return checkpoint;
}

}  // namespace limpid
