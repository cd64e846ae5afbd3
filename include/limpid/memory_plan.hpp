// The memory that a model needs, known before anything is loaded.
#pragma once

#include <cstdint>

namespace limpid {

// Sizes are in bytes unless stated otherwise. The plan follows from the checkpoint's header alone.
struct MemoryPlan {
  int64_t n_ctx = 0;             // tokens of the context that the plan is for
  int64_t n_ctx_train = 0;       // tokens of the model's own context
  bool n_ctx_reduced = false;    // n_ctx is less because the model's own context would not fit
  uint64_t weights_in_file = 0;  // mapped; the system may drop these pages and read them again
  uint64_t weights_packed = 0;   // copies in the executor's own layout
  uint64_t kv_cache = 0;         // keys and values of n_ctx positions
  uint64_t activations = 0;      // one step of n_batch tokens, and its logits
  uint64_t available = 0;        // free, according to the system or the control group; 0: unknown

  // The memory that is allocated: everything except the mapped file.
  uint64_t allocated() const { return weights_packed + kv_cache + activations; }
};

}  // namespace limpid
