// Work on the pieces of a text, on several threads.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

#include "base/thread_pool.h"

namespace limpid {

// Receives the bytes that are done, and the total. Returning false cancels.
using ByteProgress = std::function<bool(uint64_t done, uint64_t total)>;

// Calls work(i, thread) for each of the pieces, which the threads take in order; `thread` is in
// [0, pool.size()). After each call, calls `progress`, unless it is empty, from one thread at a
// time. If calls throw, throws the error of the first of these pieces, and may leave later pieces
// out. Throws ResourceError ("`what` was cancelled") if `progress` cancels.
void for_each_piece(std::span<const std::string_view> pieces, ThreadPool& pool,
                    std::string_view what, const ByteProgress& progress,
                    const std::function<void(size_t i, int thread)>& work);

}  // namespace limpid
