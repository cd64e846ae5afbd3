#include "model/model_files.h"

#include "base/check.h"
#include "base/paths.h"
#include "layouts/canonical.h"
#include "layouts/rope_scaling.h"
#include "model/tokenizer_from_metadata.h"

namespace limpid {

// The replacements are applied after the translation, so that they are the same for every layout.
Checkpoint open_model_files(const ModelFiles& files) {
  const TokenizerFiles tokenizer = find_tokenizer_files(files.tokenizer_path);
  const bool is_replaced = has_tokenizer(tokenizer);
  LIMPID_CHECK(ResourceError, is_replaced || !is_folder(files.tokenizer_path),
               "{} has no tokenizer.json, tokenizer.model, *.tiktoken or vocab.json",
               files.tokenizer_path);
  Checkpoint checkpoint = open_checkpoint(files.path, is_replaced ? "" : files.tokenizer_path);
  if (!files.config.empty()) add_configuration(checkpoint, files.config);
  checkpoint = to_canonical(std::move(checkpoint));
  if (is_replaced) {
    replace_tokenizer(checkpoint, tokenizer);
  } else if (!files.tokenizer_path.empty()) {
    replace_tokenizer_by_llama2c(checkpoint, files.tokenizer_path);
  }
  if (!files.rope_scaling.empty())
    override_rope_scaling(checkpoint, parse_rope_scaling(files.rope_scaling));
  return checkpoint;
}

}  // namespace limpid
