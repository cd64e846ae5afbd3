// Persistent threads that run one function together. The caller is thread 0. A step of a model runs
// hundreds of small jobs; starting threads for each would take longer than the work.
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>

#include "base/divide_up.h"

namespace limpid {

// A pool runs one job at a time, for one caller.
class ThreadPool {
 public:
  // `n_threads` >= 1, the caller included; 0: as many as cores this process may use. Between jobs,
  // workers spin for about 200 us at most and then sleep. They never spin when there are more
  // threads than cores.
  explicit ThreadPool(int n_threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int size() const { return size_; }

  // Calls body(i) once for each i in [0, size()) and returns when all calls are done. Calls run at
  // the same time when threads are free. A thread that wakes late finds that another thread has
  // made its call, so a job never waits for a thread that does not take part in it. Allocates
  // nothing. After all calls have finished, rethrows the first exception of a body; a pool of one
  // thread makes no further calls after an exception.
  template <typename Body>
  void run(Body&& body) {
    run_calls(size_, [&](int i, int /*thread*/) { body(i); });
  }

  // Splits [0, n) into contiguous ranges, several per thread, and calls body(begin, end, thread)
  // for each. Every range but the last is a multiple of `grain`. Calls that run at the same time
  // have different values of `thread`, which is in [0, size()). Small jobs (n <= grain) run on the
  // caller alone. With n = 1,000, grain = 16 and 2 threads there are 32 ranges of 16 or 32 numbers;
  // the last has 24.
  template <typename Body>
  void for_ranges(int64_t n, int64_t grain, Body&& body) {
    if (size_ == 1 || n <= grain) {
      if (n > 0) body(int64_t{0}, n, 0);
      return;
    }
    const int64_t n_grains = divide_up(n, grain);
    const int64_t n_wanted = int64_t{size_} * kRangesPerThread;
    const auto n_ranges = static_cast<int>(n_grains < n_wanted ? n_grains : n_wanted);
    run_calls(n_ranges, [&](int i, int thread) {
      const int64_t begin = n_grains * i / n_ranges * grain;
      const int64_t end = n_grains * (i + 1) / n_ranges * grain;
      body(begin, end < n ? end : n, thread);
    });
  }

  // As for_ranges, but calls body(i) for each i of [0, n).
  template <typename Body>
  void for_each(int64_t n, int64_t grain, Body&& body) {
    for_ranges(n, grain, [&](int64_t begin, int64_t end, int /*thread*/) {
      for (int64_t i = begin; i < end; ++i) body(i);
    });
  }

 private:
  // Many ranges, so that a thread that the system delays leaves its work to the others. A larger
  // `grain` gives fewer.
  static constexpr int kRangesPerThread = 16;

  // Passes `body` on as a function pointer and an address, so that run_erased need not be a
  // template and nothing is allocated.
  template <typename Body>
  void run_calls(int n_calls, Body&& body) {
    using Plain = std::remove_reference_t<Body>;
    run_erased([](void* context, int i, int thread) { (*static_cast<Plain*>(context))(i, thread); },
               &body, n_calls);
  }
  void run_erased(void (*function)(void*, int, int), void* context, int n_calls);
  struct Impl;
  std::unique_ptr<Impl> impl_;
  int size_;
};

}  // namespace limpid
