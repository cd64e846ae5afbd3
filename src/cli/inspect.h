// The facts that `limpid inspect` shows of a checkpoint.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "checkpoint/checkpoint.h"
#include "limpid/memory_plan.hpp"
#include "model/decoder_spec.h"

namespace limpid::cli {

struct TypeTotal {
  int64_t n_tensors = 0;
  int64_t n_elements = 0;
  uint64_t n_bytes = 0;
};

struct Inspection {
  const Checkpoint* checkpoint = nullptr;
  std::map<std::string, std::string> names_in_file;  // by Limpid's name, where it is another
  std::map<std::string, TypeTotal> totals;           // by name of type
  TypeTotal all;
  uint64_t n_file_bytes = 0;
  std::optional<DecoderSpec> spec;  // absent when Limpid cannot run it
  std::optional<MemoryPlan> plan;
  std::string problem;  // why there is no spec or plan; empty when there are both
};

// The architecture and its sizes: n_layers, d_model, …
nlohmann::ordered_json sizes_to_json(const DecoderSpec& spec);
// Everything, arrays in full.
nlohmann::ordered_json to_json(const Inspection& inspection);
// For people: arrays shortened.
std::string to_text(const Inspection& inspection);

}  // namespace limpid::cli
