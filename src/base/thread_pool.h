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

  // Calls body(thread_index) once on each of size() threads and returns when all are done. No
  // allocation. An exception of any body is rethrown here (the first one) after all have finished.
  template <typename Body>
  void run(Body&& body) {
    using Plain = std::remove_reference_t<Body>;
    run_erased([](void* context, int thread) { (*static_cast<Plain*>(context))(thread); }, &body);
  }

  // Splits [0, n) into contiguous ranges, one per thread, each a multiple of `grain` but the last,
  // and calls body(begin, end, thread). Small jobs (n <= grain) run on the caller alone.
  template <typename Body>
  void for_ranges(int64_t n, int64_t grain, Body&& body) {
    if (size_ == 1 || n <= grain) {
      if (n > 0) body(int64_t{0}, n, 0);
      return;
    }
    const int64_t n_grains = (n + grain - 1) / grain;
    run([&](int thread) {
      const int64_t begin = n_grains * thread / size_ * grain;
      int64_t end = n_grains * (thread + 1) / size_ * grain;
      if (end > n) end = n;
      if (begin < end) body(begin, end, thread);
    });
  }

 private:
  void run_erased(void (*function)(void*, int), void* context);
  struct Impl;
  std::unique_ptr<Impl> impl_;
  int size_;
};

}  // namespace limpid
