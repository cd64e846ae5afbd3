// The memory that a model needs, known before anything is loaded.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace limpid {

// The part of a model that one device has. Sizes are in bytes.
struct DevicePlan {
  std::string device;  // as OpenOptions::device names it
  // Blocks [first_layer, end_layer). The embedding lies where the first block is, the final norm
  // and the output matrix where the last one is.
  int64_t first_layer = 0;
  int64_t end_layer = 0;
  uint64_t weights_in_file = 0;  // matrices that are read from the mapped file as they are needed
  uint64_t weights = 0;          // copies in the executor's own layout
  uint64_t kv_cache = 0;         // keys and values of n_ctx positions, and rotary angles
  uint64_t activations = 0;
  uint64_t available = 0;        // free, according to the system or the driver; 0: unknown
  uint64_t bytes_per_token = 0;  // of the matrices that each token reads

  uint64_t allocated() const { return weights + kv_cache + activations; }
};

// Sizes are in bytes unless stated otherwise. The plan follows from the checkpoint's header alone.
struct MemoryPlan {
  int64_t n_ctx = 0;             // tokens of the context that the plan is for
  int64_t n_ctx_train = 0;       // tokens of the model's own context
  bool n_ctx_reduced = false;    // n_ctx is less because the model's own context would not fit
  uint64_t weights_in_file = 0;  // mapped; the system may drop these pages and read them again
  uint64_t weights_packed = 0;   // copies in the executor's own layout
  uint64_t kv_cache = 0;         // keys and values of n_ctx positions, and rotary angles
  uint64_t activations = 0;      // of one step of n_batch tokens
  uint64_t available = 0;        // free, according to the system or the control group; 0: unknown
  bool shares_memory = false;    // two devices have the same memory, which `available` counts once
  // On a CPU, quantised matrices of this block and of what comes after it stay in the file, because
  // memory has no room for their copies. Each step unpacks them. kNoLayer: all have copies.
  static constexpr int64_t kNoLayer = INT64_MAX;
  int64_t first_layer_in_file = kNoLayer;
  std::vector<DevicePlan> devices{};  // one, or two that share the layers; the numbers are the sums

  // The memory that is allocated: everything except the mapped file.
  uint64_t allocated() const { return weights_packed + kv_cache + activations; }
};

}  // namespace limpid
