// Architectures whose keys and tensors are read alike. model/registry.cpp lists the families.
#pragma once

#include <span>
#include <string_view>

#include "checkpoint/checkpoint.h"
#include "model/decoder_spec.h"
#include "model/tensor_table.h"

namespace limpid {

struct Family {
  std::span<const std::string_view> architectures;  // values of general.architecture
  // Reads the keys below the architecture's name; see read_spec in model/registry.h.
  DecoderSpec (*read_spec)(const Checkpoint& checkpoint);
  // Every tensor that such a model may have.
  TensorTable (*tensor_table)(const Checkpoint& checkpoint, const DecoderSpec& spec);
};

}  // namespace limpid
