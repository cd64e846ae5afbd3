// Persistent threads that run one function together. The caller is thread 0.
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>

namespace limpid {

class ThreadPool {
 public:
  // `n_threads` >= 1, the caller included; 0: as many as cores this process may use. Workers spin
  // for at most about 20 us between jobs and then sleep; they never spin when there are more
  // threads than cores.
  explicit ThreadPool(int n_threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int size() const { return size_; }

  // Calls body(i) once for each i in [0, size()) and returns when all are done. Calls run at the
  // same time where threads are free; a thread that wakes late finds its call taken by another, so a
  // job never waits for a thread that has no part of it. Allocates nothing. The first exception of a
  // body is rethrown here after all have finished.
  template <typename Body>
  void run(Body&& body) {
    run_calls(size_, [&](int i, int /*thread*/) { body(i); });
  }

  // Splits [0, n) into contiguous ranges, several per thread, each a multiple of `grain` but the
  // last, and calls body(begin, end, thread); calls that run at the same time differ in `thread`,
  // which is in [0, size()). Small jobs (n <= grain) run on the caller alone.
  template <typename Body>
  void for_ranges(int64_t n, int64_t grain, Body&& body) {
    if (size_ == 1 || n <= grain) {
      if (n > 0) body(int64_t{0}, n, 0);
      return;
    }
    const int64_t n_grains = (n + grain - 1) / grain;
    const int64_t n_wanted = int64_t{size_} * kRangesPerThread;
    const auto n_ranges = static_cast<int>(n_grains < n_wanted ? n_grains : n_wanted);
    run_calls(n_ranges, [&](int i, int thread) {
      const int64_t begin = n_grains * i / n_ranges * grain;
      const int64_t end = n_grains * (i + 1) / n_ranges * grain;
      body(begin, end < n ? end : n, thread);
    });
  }

 private:
  // Many, so that a thread that the system holds up leaves work to the others; a greater `grain`
  // makes them fewer.
  static constexpr int kRangesPerThread = 16;

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
