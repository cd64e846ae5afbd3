// Computes how much memory a model needs, from the header of its checkpoint, and which of its
// layers lie on which device.
#pragma once

#include <string>

#include "checkpoint/checkpoint.h"
#include "generate/devices.h"
#include "limpid/memory_plan.hpp"
#include "limpid/model.hpp"
#include "model/decoder_spec.h"

namespace limpid {

// The executors report how much memory their parts take and how much memory they have.
//
// Layers: OpenOptions::gpu_layers on the first device, or with kLayersThatFit as many as it holds
// beside the KV cache of min(4,096, the model's own context) positions, or of `options.n_ctx`.
// Context: with `options.n_ctx` 0 the model's own or, if that does not fit beside the weights, the
// largest multiple of 256 positions that does. A tenth of a device's memory stays free. If two
// devices have the same memory (a GPU named twice, or the CPU with OpenCL on the CPU), both parts
// must fit into it.
//
// File: if the model does not fit, quantised matrices of the last layers stay in the file, of as
// few layers as possible (WeightSource::stays_in_file). The context is then the one for which
// layers would leave a device, or a smaller one if even that does not fit. With
// `options.check_memory` false all are copied.
//
// Throws FormatError for a tensor that is missing or has a wrong shape, and ShapeError for sizes
// that overflow.
MemoryPlan make_memory_plan(const Checkpoint& checkpoint, const DecoderSpec& spec,
                            const OpenOptions& options, const Devices& devices);
// The same, for the devices that the options choose.
MemoryPlan make_memory_plan(const Checkpoint& checkpoint, const DecoderSpec& spec,
                            const OpenOptions& options);

// Throws ResourceError when the plan does not fit. The message has the numbers and says what to
// reduce.
void check_memory_plan(const MemoryPlan& plan);

// A line for messages: "layers 0 to 7 on opencl: weights 45.1 MiB, …; layers 8 to 29 on cpu: …".
std::string plan_text(const MemoryPlan& plan);

}  // namespace limpid
