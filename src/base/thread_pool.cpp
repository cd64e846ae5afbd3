#include "base/thread_pool.h"

#if defined(__linux__)
#include <sched.h>
#endif

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/check.h"

namespace limpid {
namespace {

constexpr int kMaxThreads = 1024;
constexpr auto kSpinTime = std::chrono::microseconds(20);

int usable_cores() {
#if defined(__linux__)
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof(set), &set) == 0) return std::max(1, CPU_COUNT(&set));
#endif
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

inline void pause_cpu() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Returns when `value` is no longer `old`: spins for a while where that is wanted, then sleeps.
int wait_for_change(const std::atomic<int>& value, int old, bool spin) {
  int now = value.load(std::memory_order_acquire);
  if (now != old) return now;
  if (spin) {
    const auto deadline = std::chrono::steady_clock::now() + kSpinTime;
    do {
      for (int i = 0; i < 32; ++i) {
        now = value.load(std::memory_order_acquire);
        if (now != old) return now;
        pause_cpu();
      }
    } while (std::chrono::steady_clock::now() < deadline);
  }
  while ((now = value.load(std::memory_order_acquire)) == old) {
    value.wait(old, std::memory_order_acquire);
  }
  return now;
}

}  // namespace

struct ThreadPool::Impl {
  // Each on a cache line of its own: workers poll `epoch`, the caller polls `n_running`.
  alignas(64) std::atomic<int> epoch{0};  // counts jobs; a change starts one
  alignas(64) std::atomic<int> n_running{0};
  alignas(64) void (*function)(void*, int) = nullptr;  // written before epoch is released
  void* context = nullptr;
  bool stop = false;
  bool spin = false;
  std::mutex failure_mutex;
  std::exception_ptr failure;
  std::vector<std::thread> workers;

  void call(int thread) noexcept {
    try {
      function(context, thread);
    } catch (...) {
      const std::lock_guard lock(failure_mutex);
      if (!failure) failure = std::current_exception();
    }
  }

  void work(int thread) {
    int seen = 0;
    while (true) {
      seen = wait_for_change(epoch, seen, spin);
      if (stop) return;
      call(thread);
      if (n_running.fetch_sub(1, std::memory_order_acq_rel) == 1) n_running.notify_one();
    }
  }

  void start() {
    // Unsigned arithmetic in effect: only inequality with the epoch before counts.
    epoch.fetch_add(1, std::memory_order_release);
    epoch.notify_all();
  }

  void join() {
    stop = true;
    start();
    for (auto& worker : workers) worker.join();
  }
};

ThreadPool::ThreadPool(int n_threads) : impl_(std::make_unique<Impl>()) {
  LIMPID_CHECK(ArgumentError, n_threads >= 0 && n_threads <= kMaxThreads,
               "{} threads; give 1 to {}, or 0 for as many as there are cores", n_threads,
               kMaxThreads);
  const int cores = usable_cores();
  size_ = n_threads == 0 ? cores : n_threads;
  impl_->spin = size_ <= cores;
  impl_->workers.reserve(static_cast<size_t>(size_ - 1));
  try {
    for (int i = 1; i < size_; ++i) {
      impl_->workers.emplace_back([impl = impl_.get(), i] { impl->work(i); });
    }
  } catch (const std::system_error& error) {
    impl_->join();
    throw ResourceError(fmt::format("cannot start {} threads: {}", size_, error.what()));
  }
}

ThreadPool::~ThreadPool() { impl_->join(); }

void ThreadPool::run_erased(void (*function)(void*, int), void* context) {
  Impl& impl = *impl_;
  if (size_ == 1) {
    function(context, 0);
    return;
  }
  impl.function = function;
  impl.context = context;
  impl.n_running.store(size_ - 1, std::memory_order_relaxed);
  impl.start();
  impl.call(0);
  for (int left = impl.n_running.load(std::memory_order_acquire); left != 0;) {
    left = wait_for_change(impl.n_running, left, impl.spin);
  }
  if (impl.failure) std::rethrow_exception(std::exchange(impl.failure, nullptr));
}

}  // namespace limpid
