// From a checkpoint's names and keys to a DecoderSpec and loaded weights.
#pragma once

#include <cstdint>
#include <functional>

#include "checkpoint/checkpoint.h"
#include "executor/executor.h"
#include "model/decoder.h"
#include "model/decoder_spec.h"
#include "model/tensor_table.h"

namespace limpid {

// Reads general.architecture and lets that family read its keys. Every key and tensor that would
// change the result is implemented or refused by name. Throws UnsupportedError, FormatError. Needs
// no tensor data beyond rope_freqs.
DecoderSpec read_spec(const Checkpoint& checkpoint);

// Every tensor that the model may have: names and shapes of what load_weights loads.
TensorTable tensor_table(const Checkpoint& checkpoint, const DecoderSpec& spec);

// Hands every tensor of the model to the executor, with its shape checked.
DecoderWeights load_weights(
    const Checkpoint& checkpoint, const DecoderSpec& spec, Executor& executor,
    const std::function<bool(uint64_t done, uint64_t total)>& progress = {});

}  // namespace limpid
