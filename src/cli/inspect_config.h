// The facts that `limpid inspect --config` computes from a model's sizes alone.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "model/decoder_spec.h"

namespace limpid::cli {

struct TypeMemory {
  std::string type;
  uint64_t weights = 0;  // bytes
  // Bytes, with gradients of the type and Adam's two moments in f32; 0: no training.
  uint64_t training = 0;
};

struct ConfigurationReport {
  std::string name;
  DecoderSpec spec;
  int64_t n_parameters = 0;
  int64_t n_embedding = 0;  // token and position tables
  int64_t n_output = 0;     // 0: tied
  int64_t n_attention = 0;
  int64_t n_feed_forward = 0;
  int64_t n_norms = 0;
  // With as many key-value heads as heads.
  int64_t n_attention_full = 0;
  uint64_t kv_bytes_per_token = 0;  // f16
  uint64_t kv_bytes_per_token_full = 0;
  std::vector<TypeMemory> memory;
};

// Of a checkpoint whose tensors need no data (model/configuration.h).
ConfigurationReport report_configuration(const Checkpoint& checkpoint);

nlohmann::ordered_json to_json(const ConfigurationReport& report);
std::string to_text(const ConfigurationReport& report);

}  // namespace limpid::cli
