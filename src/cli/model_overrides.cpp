#include "cli/model_overrides.h"

#include "cli/model_path.h"
#include "model/canonical.h"

namespace limpid::cli {

void declare_overrides(Flags& flags, ModelOverrides& values) {
  flags.text("--config FILE", values.config,
             "hyper-parameters of a bare state dictionary, as JSON: a file, or the text itself");
  flags.text("--rope-scaling TEXT", values.rope_scaling,
             "none, linear:FACTOR or llama3:FACTOR,LOW,HIGH,ORIGINAL in place of the model's own");
}

std::shared_ptr<const Checkpoint> open_header(const ModelFlags& flags,
                                              const ModelOverrides& overrides) {
  return std::make_shared<const Checkpoint>(open_model_files(
      {resolve_model(flags.model), flags.tokenizer, overrides.config, overrides.rope_scaling}));
}

}  // namespace limpid::cli
