// The reports of `limpid inspect`. A report is a JSON document, which --json prints as it is; the
// text for people is made from the same document.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "cli/output.h"
#include "limpid/model.hpp"
#include "model/decoder_spec.h"

namespace limpid::cli {

// The architecture and its sizes: n_layers, d_model, …
Json sizes_to_json(const DecoderSpec& spec);
std::string sizes_text(const Json& sizes);

// Names of tensors by layer, in the order of the file but for the layers: files that sort names
// have layer 10 before layer 2.
std::multimap<int64_t, std::string> tensors_by_layer(const Checkpoint& checkpoint);

// What is in a checkpoint, and the memory that it takes to run it. A checkpoint that Limpid cannot
// run is reported all the same: "model" or "memory_plan" is null, and "problem" says why.
Json inspect_checkpoint(const Checkpoint& checkpoint, const OpenOptions& options);
// Arrays and long texts shortened.
std::string checkpoint_text(const Json& report);

// How fast memory lets a plan be: a token reads every matrix once.
struct PlanSpeed {
  std::vector<double> rates;     // bytes a second, of each device; 0: unknown
  double tokens_per_second = 0;  // at most; 0: unknown
};
// Measures the rates, which takes about a second, and half a GB at most on the CPU. Throws
// ResourceError.
PlanSpeed measure_speed(const MemoryPlan& plan, int n_threads);

// "28.6", and for slower ones as many digits as tell them from 0: "0.026".
std::string speed_text(double tokens_per_second);

// For what a model reads from the file because memory has no room for it; "" for nothing.
std::string in_file_note(const MemoryPlan& plan);

// Which layers lie on which device, with the bytes of each, and the tokens a second that the memory
// allows. Throws the errors of open_devices, make_memory_plan and measure_speed.
Json inspect_plan(const Checkpoint& checkpoint, const OpenOptions& options);
std::string plan_report_text(const Json& report);

// The distribution and the `n_singular` largest singular values of each tensor, and, where `other`
// has a tensor of that name and shape, how far it is and the same of it. Rows of Q and K that the
// two layouts order differently are compared in one order. `other` may be null. Reads all weights.
Json inspect_weights(const Checkpoint& checkpoint, const Checkpoint* other, int n_singular,
                     int n_threads);
std::string weights_text(const Json& report);
// The same as a picture (SVG).
std::string weights_chart(const Json& report);

// What follows from a model's sizes alone: parameters, and memory for weights, training and KV
// cache. The tensors of `checkpoint` need no data (model/configuration.h).
Json inspect_configuration(const Checkpoint& checkpoint);
std::string configuration_text(const Json& report);

}  // namespace limpid::cli
