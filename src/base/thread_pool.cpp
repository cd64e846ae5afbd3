#include "base/thread_pool.h"

#include <atomic>
#include <chrono>
#include <csignal>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/system_limits.h"

namespace limpid {
namespace {

constexpr int kMaxThreads = 1024;
constexpr auto kSpinTime = std::chrono::microseconds(200);

// Tells the CPU that this is a spin loop: it saves power and leaves the core to its other hardware
// thread.
inline void pause_cpu() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Threads that start while this object exists receive no signals. Handlers then run on the
// application's own threads, so that Ctrl-C interrupts a read that waits there. Signals for a
// thread's own faults stay enabled.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP}) sigdelset(&all, fault);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_{};
};

// Waits until `value` differs from `old`, and returns the new value. If `spin` is set, spins for a
// while before it sleeps.
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

// A job is a number of calls that threads claim one at a time. Each thread has a share of them, and
// helps with the shares of the others when its own is done. So thread 1 computes the same part of
// the rows in job after job, and finds what it wrote before in its own caches.
//
// The word of a share holds the job's number and the number of calls still to claim, in 64 bits,
// and a thread claims a call by decrementing it with a compare-and-swap. Job 7 with three calls
// begins as (7, 3); three claims later it is (7, 0).
//
// The job's number makes late threads harmless. A thread that wakes late and still holds (7, 1)
// fails to swap when the word is (8, 5) by now. And a thread that has claimed a call may read the
// job's function, because the job cannot end before that call does.
struct ThreadPool::Impl {
  // Each counter has its own cache line, because workers poll `epoch` and the caller polls
  // `n_unfinished`.
  alignas(64) std::atomic<int> epoch{0};  // changes when a job starts
  alignas(64) std::atomic<int> n_unfinished{0};
  struct alignas(64) Share {
    std::atomic<uint64_t> claims{0};  // job << 32 | calls left
  };
  std::vector<Share> shares;  // of each thread
  uint64_t job = 0;
  alignas(64) void (*function)(void*, int, int) = nullptr;
  void* context = nullptr;
  int n_calls = 0;
  bool spin = false;
  std::atomic<bool> stop{false};
  std::mutex failure_mutex;
  std::exception_ptr failure;
  std::vector<std::thread> workers;

  // Makes call i. Keeps the first exception for the caller of run().
  void call(int i, int thread) noexcept {
    try {
      function(context, i, thread);
    } catch (...) {
      const std::lock_guard lock(failure_mutex);
      if (!failure) failure = std::current_exception();
    }
  }

  // The first call of a share.
  int first_of(size_t share) const {
    return static_cast<int>(static_cast<size_t>(n_calls) * share / shares.size());
  }

  // Claims and makes calls of a share until none is left to claim. Gives their number.
  int take_share(size_t share, int thread) {
    std::atomic<uint64_t>& claims = shares[share].claims;
    uint64_t now = claims.load(std::memory_order_acquire);
    int n_made = 0;
    while ((now & 0xFFFF'FFFFU) != 0) {
      if (!claims.compare_exchange_weak(now, now - 1, std::memory_order_acq_rel,
                                        std::memory_order_acquire)) {
        continue;
      }
      // `now` counts what was left before this claim, so calls are claimed from the first on.
      call(first_of(share + 1) - static_cast<int>(now & 0xFFFF'FFFFU), thread);
      ++n_made;
      now = claims.load(std::memory_order_acquire);
    }
    return n_made;
  }

  // Reports all its calls at once: `n_unfinished` is shared by all threads, and each change of it
  // moves its cache line between cores.
  void take_part(int thread) {
    const auto own = static_cast<size_t>(thread);
    int n_made = 0;
    for (size_t i = 0; i < shares.size(); ++i)
      n_made += take_share((own + i) % shares.size(), thread);
    if (n_made > 0 && n_unfinished.fetch_sub(n_made, std::memory_order_acq_rel) == n_made)
      n_unfinished.notify_one();
  }

  // The loop of a worker: waits for a job, takes part in it, until the pool ends.
  void work(int thread) {
    for (int seen = 0; !stop.load(std::memory_order_relaxed);) {
      seen = wait_for_change(epoch, seen, spin);
      take_part(thread);
    }
  }

  void wake() {
    epoch.fetch_add(1, std::memory_order_release);
    epoch.notify_all();
  }

  void join() {
    stop.store(true, std::memory_order_relaxed);
    wake();
    for (auto& worker : workers) worker.join();
  }
};

ThreadPool::ThreadPool(int n_threads) : impl_(std::make_unique<Impl>()) {
  LIMPID_CHECK(ArgumentError, n_threads >= 0 && n_threads <= kMaxThreads,
               "{} threads; give 1 to {}, or 0 for as many as there are cores", n_threads,
               kMaxThreads);
  // A single thread never spins, so the system is not asked. Short jobs make pools of one thread
  // often, and usable_cores() reads files of the control group.
  const int cores = n_threads == 1 ? 1 : usable_cores();
  size_ = n_threads == 0 ? cores : n_threads;
  impl_->spin = size_ <= cores;
  impl_->shares = std::vector<Impl::Share>(static_cast<size_t>(size_));
  impl_->workers.reserve(static_cast<size_t>(size_ - 1));
  const SignalsBlocked blocked;
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

// Starts a job: sets its function, its counters and, last, the claims, with which the job becomes
// visible to the workers. Then takes part in it, and waits for the calls of other threads.
void ThreadPool::run_erased(void (*function)(void*, int, int), void* context, int n_calls) {
  Impl& impl = *impl_;
  if (size_ == 1) {
    for (int i = 0; i < n_calls; ++i) function(context, i, 0);
    return;
  }
  impl.function = function;
  impl.context = context;
  impl.n_calls = n_calls;
  impl.n_unfinished.store(n_calls, std::memory_order_relaxed);
  ++impl.job;
  for (size_t i = 0; i < impl.shares.size(); ++i) {
    const auto n = static_cast<uint64_t>(impl.first_of(i + 1) - impl.first_of(i));
    impl.shares[i].claims.store(impl.job << 32 | n, std::memory_order_release);
  }
  impl.wake();
  impl.take_part(0);
  for (int left = impl.n_unfinished.load(std::memory_order_acquire); left != 0;) {
    left = wait_for_change(impl.n_unfinished, left, impl.spin);
  }
  if (impl.failure) std::rethrow_exception(std::exchange(impl.failure, nullptr));
}

}  // namespace limpid
