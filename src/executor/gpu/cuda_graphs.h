// Steps of one shape as CUDA graphs: a list of launches that is repeated is captured from the
// stream and launched as one graph, which costs the host one call instead of hundreds.
//
// The key of a graph is its own content: kernels, grids and arguments, with the addresses of all
// buffers. A graph therefore never has to be invalidated: if anything changes (the number of
// tokens, how attention divides a context, a buffer that has grown), the list differs, and another
// graph is made.
#pragma once

#include <span>
#include <vector>

#include "executor/gpu/cuda_functions.h"
#include "executor/gpu/gpu_api.h"

namespace limpid::gpu::cuda {

// The queue that launches go to.
struct Queue {
  Stream stream;
  bool overlaps;  // a kernel begins while the preceding one still runs; AWAIT() waits for its end
};

// Launches in order, which can be compared.
class LaunchList {
 public:
  static constexpr size_t kMostArguments = 24;

  void clear() {
    launches_.clear();
    arguments_.clear();
  }
  bool empty() const { return launches_.empty(); }
  bool operator==(const LaunchList&) const = default;

  // `arguments` are addresses of buffers, and numbers as their bytes.
  void add(Function function, const Kernel& kernel, const Grid& grid,
           std::span<const uint64_t> arguments);
  // Launches all. Stops at the first launch that fails and sets `failed` to its kernel, which must
  // still exist.
  Status launch(const DriverFunctions& cu, const Queue& queue, const Kernel*& failed) const;

 private:
  struct Launch {
    Function function;
    const Kernel* kernel;
    Grid grid;
    size_t n_arguments;
    bool operator==(const Launch&) const = default;
  };
  std::vector<Launch> launches_;
  std::vector<uint64_t> arguments_;  // of all launches, one after another
};

// The graphs of a queue; its context is current in every call.
class GraphCache {
 public:
  GraphCache(const DriverFunctions& cu, const Queue& queue) : cu_(cu), queue_(queue) {}
  GraphCache(const GraphCache&) = delete;
  GraphCache& operator=(const GraphCache&) = delete;
  ~GraphCache();

  // Launches the list: one by one the first time, as a graph from the second time on. If the driver
  // cannot make a graph of it, one by one every time.
  Status launch(const LaunchList& list, const Kernel*& failed);

 private:
  struct Entry {
    LaunchList list;
    GraphExec exec;   // null until the list came again
    bool is_refused;  // by the driver, as a graph
    uint64_t last_use;
  };
  Entry& entry_of(const LaunchList& list);
  // Null if the driver cannot make a graph of the list.
  GraphExec capture(const LaunchList& list);

  const DriverFunctions& cu_;
  Queue queue_;
  std::vector<Entry> entries_;
  uint64_t n_uses_ = 0;
};

}  // namespace limpid::gpu::cuda
