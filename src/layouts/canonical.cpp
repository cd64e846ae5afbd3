#include "layouts/canonical.h"

#include "base/check.h"
#include "base/mapped_file.h"
#include "checkpoint/metadata.h"
#include "layouts/hugging_face.h"
#include "layouts/meta.h"
#include "layouts/state_dict.h"

namespace limpid {

// Meta's names also occur in plain state dictionaries, so they are recognised by name.
Checkpoint to_canonical(Checkpoint checkpoint) {
  if (checkpoint.naming == Naming::kGguf) return checkpoint;
  if (checkpoint.naming == Naming::kHuggingFace) return canonical_from_hugging_face(checkpoint);
  if (checkpoint.naming == Naming::kMeta || has_meta_names(checkpoint))
    return meta_to_canonical(std::move(checkpoint));
  return canonical_from_state_dict(std::move(checkpoint));
}

void add_configuration(Checkpoint& checkpoint, const std::string& config) {
  const bool lacks_params = checkpoint.naming == Naming::kMeta && checkpoint.metadata.all().empty();
  LIMPID_CHECK(ArgumentError, checkpoint.naming == Naming::kStateDict || lacks_params,
               "OpenOptions::config is for a bare state dictionary; {} ({}) carries its own",
               checkpoint.path, checkpoint.format);
  std::string prefix = "given.";
  if (lacks_params || has_meta_names(checkpoint)) {
    prefix = "params.";
  } else if (checkpoint.find("model.embed_tokens.weight") != nullptr) {
    prefix = "config.";
    checkpoint.naming = Naming::kHuggingFace;
    checkpoint.row_order = RowOrder::kHalfSplit;
  }
  if (config.starts_with('{'))
    return add_json("OpenOptions::config", config, prefix, checkpoint.metadata);
  checkpoint.given_config = config;
  const auto file = MappedFile::open(config);
  add_json(config, text_of(*file), prefix, checkpoint.metadata);
}

}  // namespace limpid
