// Stopping work from another thread or a signal handler.
//
//   limpid::CancelToken cancel;
//   limpid::GenerationOptions options;
//   options.cancel = cancel;  // a copy means the same token
//   std::thread watchdog([cancel] { sleep_a_while(); cancel.cancel(); });
#pragma once

#include <atomic>
#include <memory>

namespace limpid {

// Copies share one flag. It is looked at before each token and before each chunk of a prompt.
class CancelToken {
 public:
  CancelToken() : flag_(std::make_shared<std::atomic<bool>>(false)) {}

  // Safe from any thread, and from a signal handler (lock-free, allocates nothing).
  void cancel() const noexcept { flag_->store(true, std::memory_order_relaxed); }
  // Makes the token usable again; the next answer starts with a clean flag.
  void reset() const noexcept { flag_->store(false, std::memory_order_relaxed); }
  bool cancelled() const noexcept { return flag_->load(std::memory_order_relaxed); }

 private:
  std::shared_ptr<std::atomic<bool>> flag_;
};

}  // namespace limpid
