// Writes an adapter in PEFT's layout.
#pragma once

#include <string>

#include "checkpoint/checkpoint.h"

namespace limpid {

// Writes adapter `number` of the checkpoint (layouts/lora_adapter.h) to a folder that is created:
// adapter_config.json and adapter_model.safetensors. `base_model` is recorded as the model that the
// adapter belongs to. Throws ResourceError.
void export_lora_adapter(const std::string& path, const Checkpoint& canonical, int64_t number,
                         const std::string& base_model);

}  // namespace limpid
