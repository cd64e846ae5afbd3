// The measurements of `limpid bench`, and how they are counted.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "cli/machine.h"
#include "insight/flop_count.h"
#include "insight/timing_executor.h"
#include "model/decoder_spec.h"
#include "tensor/dtype.h"

namespace limpid::cli {

// The cost of one token, computed from the model's header.
struct TokenCost {
  uint64_t weight_bytes = 0;  // read once per step, as stored in the file
  uint64_t head_bytes = 0;    // the part of weight_bytes that is the output projection
  FlopCount weight_flops;     // 2 per weight of a projection, the head left out
  FlopCount head_flops;
  uint64_t kv_bytes_per_position = 0;  // read for each earlier position
  int64_t kv_flops_per_position = 0;
};
TokenCost cost_of(const Checkpoint& checkpoint, const DecoderSpec& spec, DType k_dtype,
                  DType v_dtype);

struct BenchResult {
  std::string test;             // "pp512", "tg128 @ d2048"
  int64_t n_prompt = 0;         // tokens evaluated at once in one repetition,
  int64_t n_generated = 0;      // or one after another
  int64_t depth = 0;            // positions in the cache beforehand
  std::vector<double> seconds;  // one for each repetition
  double n_bytes = 0;           // read from memory in one repetition, at least
  FlopCount n_flops;
  std::vector<OpTime> ops;  // of all repetitions together; empty unless asked for

  [[nodiscard]] int64_t n_tokens() const { return n_prompt + n_generated; }
  [[nodiscard]] double tokens_per_second() const;
  [[nodiscard]] double deviation() const;  // of the tokens per second, over the repetitions
  [[nodiscard]] double mean_seconds() const;
};

struct BenchReport {
  std::string model;     // name in the metadata, or of the file
  uint64_t n_bytes = 0;  // of the tensors
  int64_t n_parameters = 0;
  std::string device;
  Machine machine;
  MachineLimits limits;
  std::vector<BenchResult> results;
};

// The report as `limpid bench -o md`, csv and json print it.
std::string to_markdown(const BenchReport& report);
std::string to_csv(const BenchReport& report);
std::string to_json_text(const BenchReport& report);

}  // namespace limpid::cli
