#include "train/text_pieces.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>

#include "base/check.h"

namespace limpid {

// Pieces are taken in order, so the first one that fails is always tried, and its error is thrown.
void for_each_piece(std::span<const std::string_view> pieces, ThreadPool& pool,
                    std::string_view what, const ByteProgress& progress,
                    const std::function<void(size_t i, int thread)>& work) {
  uint64_t n_bytes = 0;
  for (const std::string_view piece : pieces) n_bytes += piece.size();
  std::atomic<size_t> next = 0;
  std::atomic<size_t> end = pieces.size();  // of the pieces that are worth trying
  std::mutex mutex;                         // for all below
  uint64_t n_done = 0;
  std::exception_ptr error;
  const auto report = [&](size_t n) {
    const std::lock_guard lock(mutex);
    n_done += n;
    LIMPID_CHECK(ResourceError, !progress || progress(n_done, n_bytes), "{} was cancelled", what);
  };
  pool.run([&](int thread) {
    for (size_t i = 0; (i = next++) < end;) {
      try {
        work(i, thread);
        report(pieces[i].size());
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (i < end) error = std::current_exception();
        end = std::min<size_t>(end, i);
      }
    }
  });
  if (error) std::rethrow_exception(error);
}

}  // namespace limpid
