#include "executor/gpu/cuda_graphs.h"

#include <algorithm>
#include <array>

#include "base/check.h"

namespace limpid::gpu::cuda {
namespace {

// A server alternates between a few shapes of steps. A graph takes kilobytes.
constexpr size_t kMostGraphs = 16;

}  // namespace

void LaunchList::add(Function function, const Kernel& kernel, const Grid& grid,
                     std::span<const uint64_t> arguments) {
  LIMPID_ASSERT(arguments.size() <= kMostArguments);
  launches_.push_back({function, &kernel, grid, arguments.size()});
  arguments_.insert(arguments_.end(), arguments.begin(), arguments.end());
}

Status LaunchList::launch(const DriverFunctions& cu, const Queue& queue,
                          const Kernel*& failed) const {
  const LaunchAttribute overlap = {kProgrammaticStreamSerialization, {1}};
  const uint64_t* argument = arguments_.data();
  for (const auto& [function, kernel, grid, n_arguments] : launches_) {
    std::array<void*, kMostArguments> places{};
    for (size_t i = 0; i < n_arguments; ++i)
      places[i] = const_cast<uint64_t*>(argument++);  // the driver only reads them
    const LaunchConfig config = {
        {static_cast<unsigned>(grid.groups_x), static_cast<unsigned>(grid.groups_y), 1},
        {static_cast<unsigned>(grid.items), 1, 1},
        static_cast<unsigned>(grid.local_bytes),
        queue.stream,
        &overlap,
        queue.overlaps ? 1U : 0U};
    const Status status = cu.launch(&config, function, places.data(), nullptr);
    if (status == 0) continue;
    failed = kernel;
    return status;
  }
  return 0;
}

GraphCache::~GraphCache() {
  for (const Entry& entry : entries_)
    if (entry.exec != nullptr) cu_.destroy_graph_exec(entry.exec);
}

Status GraphCache::launch(const LaunchList& list, const Kernel*& failed) {
  Entry& entry = entry_of(list);
  const bool is_new = entry.last_use == 0;
  entry.last_use = ++n_uses_;
  if (!is_new && entry.exec == nullptr && !entry.is_refused) {
    entry.exec = capture(list);
    entry.is_refused = entry.exec == nullptr;
  }
  if (entry.exec == nullptr) return list.launch(cu_, queue_, failed);
  return cu_.launch_graph(entry.exec, queue_.stream);
}

// The list's entry. A new entry replaces the one that was used least recently.
GraphCache::Entry& GraphCache::entry_of(const LaunchList& list) {
  const auto found = std::ranges::find(entries_, list, &Entry::list);
  if (found != entries_.end()) return *found;
  if (entries_.size() < kMostGraphs) return entries_.emplace_back(Entry{list, nullptr, false, 0});
  Entry& oldest = *std::ranges::min_element(entries_, {}, &Entry::last_use);
  // A graph that still runs is freed when it ends.
  if (oldest.exec != nullptr) cu_.destroy_graph_exec(oldest.exec);
  return oldest = {list, nullptr, false, 0};
}

GraphExec GraphCache::capture(const LaunchList& list) {
  if (cu_.begin_capture(queue_.stream, kCaptureThreadLocal) != 0) return nullptr;
  const Kernel* failed = nullptr;
  const Status launched = list.launch(cu_, queue_, failed);
  Graph graph = nullptr;
  // The capture ends in any case: a stream that captures does nothing else.
  const Status ended = cu_.end_capture(queue_.stream, &graph);
  if (ended != 0 || graph == nullptr) return nullptr;
  GraphExec exec = nullptr;
  if (launched == 0 && cu_.instantiate(&exec, graph, 0) != 0) exec = nullptr;
  cu_.destroy_graph(graph);
  return exec;
}

}  // namespace limpid::gpu::cuda
