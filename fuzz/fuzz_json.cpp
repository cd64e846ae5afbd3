// Configuration files on any bytes, and what the model room makes of them: an Error of ours, or a
// checkpoint in GGUF's vocabulary.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "checkpoint/json_metadata.h"
#include "limpid/error.hpp"
#include "model/canonical.h"

namespace {

limpid::Checkpoint checkpoint_of(std::string_view text) {
  limpid::Checkpoint checkpoint;
  checkpoint.path = "input";
  checkpoint.format = "Hugging Face";
  checkpoint.naming = limpid::Naming::kHuggingFace;
  checkpoint.head_rows = limpid::HeadRows::kHalfSplit;
  limpid::add_json("config.json", text, "config.", checkpoint.metadata);
  limpid::add_json("generation_config.json", text, "generation_config.", checkpoint.metadata);
  return checkpoint;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    limpid::to_canonical(checkpoint_of({reinterpret_cast<const char*>(data), size}));
  } catch (const limpid::Error&) {
    return 0;
  }
  return 0;
}
