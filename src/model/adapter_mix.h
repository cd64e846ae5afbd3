// The factors by which the adapters of a model are multiplied for a sequence
// (layouts/lora_adapter.h). A model with n adapters has as many models inside as there are mixes:
//
//   W + 1.0 * scale_0 B_0 A_0 + 0.5 * scale_1 B_1 A_1      mix {1, 0.5}
//
// Keys and values of one mix are wrong for another, so each mix has its own variant in the KV
// cache.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

namespace limpid {

struct AdapterMix {
  uint64_t variant;             // as in KvCache::add_sequence; never 0
  std::vector<double> factors;  // one for each adapter; 0 leaves it out
};

// Returns the same mix for equal factors, while it is in use and for some time after. So the next
// request with these factors finds its prompt in the KV cache. May be used by many threads.
class AdapterMixes {
 public:
  // Null, which is variant 0, for factors that are all 1 and for none: the model as it was opened.
  std::shared_ptr<const AdapterMix> find(std::span<const double> factors);

 private:
  static constexpr size_t kMostKept = 64;  // a client may name any number of factors

  std::mutex mutex_;                                      // guards what follows
  std::deque<std::shared_ptr<const AdapterMix>> recent_;  // the last used one is first
  std::deque<std::weak_ptr<const AdapterMix>> in_use_;    // all that have not ended
  uint64_t last_variant_ = 0;
};

}  // namespace limpid
