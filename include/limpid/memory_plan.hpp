// What a model needs of memory, known before anything is loaded.
#pragma once

#include <cstdint>

namespace limpid {

// Bytes, unless said otherwise. Computed from the checkpoint's header alone.
struct MemoryPlan {
  int64_t n_ctx = 0;             // tokens of the context that the plan is for
  int64_t n_ctx_train = 0;       // the model's own
  bool n_ctx_reduced = false;    // the model's own context would not fit, so n_ctx is less
  uint64_t weights_in_file = 0;  // mapped from the file; the system may drop and reread these pages
  uint64_t weights_packed = 0;   // copies in the executor's own layout
  uint64_t kv_cache = 0;         // keys and values of n_ctx positions
  uint64_t activations = 0;      // one step of n_batch tokens, and its logits
  uint64_t available = 0;        // what the system (or the control group) says is free; 0: unknown

  // Memory that is allocated: all but the mapped file.
  uint64_t allocated() const { return weights_packed + kv_cache + activations; }
};

}  // namespace limpid
