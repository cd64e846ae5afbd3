// Runs a model over one sequence, for tests that compare logits.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <span>
#include <vector>

#include "model/model.h"

namespace limpid::testing {

inline std::vector<int32_t> some_tokens(int64_t n, int64_t vocab_size) {
  std::vector<int32_t> tokens;
  for (int64_t i = 0; i < n; ++i)
    tokens.push_back(static_cast<int32_t>((i * i * 7 + 3 * i + 1) % vocab_size));
  return tokens;
}

// Logits of all tokens, run in chunks of `chunk`: [n, vocab_size].
inline std::vector<float> run_in_chunks(Model& model, std::span<const int32_t> tokens, size_t chunk,
                                        DType kv_dtype = DType::kF32) {
  const auto cache = model.make_cache(static_cast<int64_t>(tokens.size()), kv_dtype, kv_dtype);
  const SequenceId sequence = cache->add_sequence();
  std::vector<float> all;
  for (size_t i = 0; i < tokens.size(); i += chunk) {
    const StepItem item{sequence, tokens.subspan(i, std::min(chunk, tokens.size() - i)),
                        StepItem::Outputs::kAll};
    const std::span<const float> logits = model.step(*cache, {&item, 1});
    all.insert(all.end(), logits.begin(), logits.end());
  }
  return all;
}

// The logits of Model::read_out, [n, vocab_size], for a vocabulary that is one part.
inline std::vector<float> read_out(Model& model, std::span<const float> streams) {
  std::vector<float> logits;
  model.read_out(streams, [&](const ColumnPart& part) {
    const auto n = std::ssize(streams) / model.spec().d_model;
    logits.assign(part.values, part.values + n * part.stride);
  });
  return logits;
}

}  // namespace limpid::testing
