// Stops work from another thread or a signal handler.
//
//   limpid::GenerationOptions options;
//   std::thread watchdog([cancel = options.cancel] {  // a copy means the same token
//     std::this_thread::sleep_for(std::chrono::seconds(10));
//     cancel.cancel();
//   });
#pragma once

#include <atomic>
#include <memory>

namespace limpid {

// Copies share one flag, which Limpid checks before each token and before each chunk of a prompt.
// Copied options hold the same token, so cancelling one of two answers with the same options
// cancels both.
class CancelToken {
 public:
  CancelToken() : flag_(std::make_shared<std::atomic<bool>>(false)) {}
  // Moving copies: options that were moved from keep their token.
  CancelToken(const CancelToken&) = default;
  CancelToken& operator=(const CancelToken&) = default;

  // May be called from any thread and from a signal handler (it is lock-free and does not
  // allocate).
  void cancel() const noexcept { flag_->store(true, std::memory_order_relaxed); }
  // Makes the token usable again for the next answer.
  void reset() const noexcept { flag_->store(false, std::memory_order_relaxed); }
  bool cancelled() const noexcept { return flag_->load(std::memory_order_relaxed); }

 private:
  std::shared_ptr<std::atomic<bool>> flag_;
};

}  // namespace limpid
