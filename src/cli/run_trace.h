// `limpid run --trace`: how the first token of an answer is computed, op by op.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/flags.h"
#include "cli/options.h"

namespace limpid::cli {

struct TraceFlags {
  bool trace = false;
  std::string layers;                // "0,5"; -1: outside the layers
  std::vector<std::string> ops;      // of op_list.h, of a matrix or of a place
  std::vector<std::string> breaks;   // names of activations: insight/step_tracer.h
  std::vector<std::string> tensors;  // likewise: what a break prints besides its own
  int64_t n_values = 4;              // that are shown of a row; 0: all
};

// The KV cache of a trace is f32, as that of `limpid logits`, unless -ctk and -ctv say otherwise:
// declare these after it, because CLI11 reads the values in the order of the declarations.
void declare_trace(CLI::App& app, TraceFlags& values, OpenOptions& options);

// Evaluates the prompt in one step and prints each op as it is done, then the likeliest next
// tokens. The evaluation ends at the last of the breaks. With `json` each line is an object. Throws
// ArgumentError.
void run_trace(const ModelFlags& model, const TraceFlags& values, const std::string& prompt,
               bool json);

}  // namespace limpid::cli
