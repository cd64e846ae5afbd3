// Turns a checkpoint's names and keys into a DecoderSpec and loaded weights.
//
// Loading has three steps. read_spec reads the keys of one family into a DecoderSpec. tensor_table
// lists the expected tensors for that spec. load_weights checks the shapes and hands the tensors to
// the executor, which decides how to store them.
#pragma once

#include <cstdint>
#include <functional>

#include "checkpoint/checkpoint.h"
#include "executor/executor.h"
#include "model/decoder.h"
#include "model/decoder_spec.h"
#include "model/tensor_table.h"

namespace limpid {

// Reads general.architecture and calls the reader of that family. Every key that would change the
// result is either implemented or refused by name. Reads no tensor data except rope_freqs. Throws
// UnsupportedError, FormatError.
DecoderSpec read_spec(const Checkpoint& checkpoint);

// Lists every tensor that the model can have: the names and shapes for load_weights.
TensorTable tensor_table(const Checkpoint& checkpoint, const DecoderSpec& spec);

// Loads every tensor of the model into the executor, after checking its shape. Throws
// UnsupportedError for a tensor that the model does not have and that would change the result.
DecoderWeights load_weights(
    const Checkpoint& checkpoint, const DecoderSpec& spec, Executor& executor,
    const std::function<bool(uint64_t done, uint64_t total)>& progress = {});

}  // namespace limpid
