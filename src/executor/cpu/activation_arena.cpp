// A step takes and gives back the same sizes in the same order as the step before it, so it gets
// the same addresses. The lists have room for as many ranges as can be free, so that give()
// allocates nothing.
#include "executor/cpu/activation_arena.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/check.h"
#include "base/checked.h"

namespace limpid {
namespace {

constexpr uint64_t kAlignment = 64;
constexpr uint64_t kPiece = uint64_t{64} << 20;  // the least that is asked for
// Smaller ranges are free at once: those of few tokens, whose columns threads share out.
constexpr uint64_t kLeastKept = uint64_t{256} << 10;
constexpr size_t kSlots = 1024;  // activations alive at once without growing a table

}  // namespace

ActivationArena::ActivationArena() {
  free_.reserve(3 * kSlots);
  given_.reserve(kSlots);
  slots_.reserve(kSlots);
  free_slots_.reserve(kSlots);
}

ActivationArena::~ActivationArena() {
  for (const Range& piece : pieces_) ::munmap(piece.begin, piece.size);
}

void ActivationArena::reserve(int64_t n_ranges, uint64_t most_bytes, uint64_t largest_bytes) {
  const auto most = checked_align_up(most_bytes, kAlignment);
  const auto largest = checked_align_up(largest_bytes, kAlignment);
  const auto of_small = most ? checked_mul(static_cast<uint64_t>(2 * n_ranges - 1), *most) : most;
  if (of_small && largest && *of_small <= small_bytes_ && *largest <= large_.size) {
    most_bytes_ = std::max(most_bytes_, *most);
    return;
  }
  const auto small_bytes = of_small ? std::max({*of_small, small_bytes_, kPiece}) : of_small;
  const auto n_bytes =
      small_bytes && largest ? checked_add(*small_bytes, std::max(*largest, large_.size)) : largest;
  LIMPID_CHECK(ResourceError, n_bytes.has_value() && small_bytes.has_value(),
               "{} activations of {} bytes are too large; use a smaller batch", n_ranges,
               most_bytes);
  const Range piece = add_piece(*n_bytes);
  if (n_taken_ == 0) {
    for (auto i = pieces_.begin(); i != pieces_.end() - 1; ++i) ::munmap(i->begin, i->size);
    pieces_.assign(1, piece);
    free_.clear();
  } else if (!large_is_taken_ && large_.size > 0) {
    free_range(large_);
  }
  large_ = {piece.begin + *small_bytes, piece.size - *small_bytes};
  large_is_taken_ = false;
  small_bytes_ = *small_bytes;
  most_bytes_ = std::max(most_bytes_, *most);
  free_range({piece.begin, small_bytes_});
}

ActivationArena::Range ActivationArena::add_piece(uint64_t n_bytes) {
  pieces_.reserve(pieces_.size() + 1);
  free_.reserve(slots_.capacity() + given_.capacity() + pieces_.capacity() + 1);
  void* memory = ::mmap(nullptr, n_bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  LIMPID_CHECK(ResourceError, memory != MAP_FAILED,
               "cannot reserve {} bytes for activations ({}); use a smaller batch", n_bytes,
               std::strerror(errno));
  ::madvise(memory, n_bytes, MADV_HUGEPAGE);
  pieces_.push_back({static_cast<std::byte*>(memory), n_bytes});
  return pieces_.back();
}

int32_t ActivationArena::take(int64_t n_floats) {
  const auto bytes = checked_mul<uint64_t>(static_cast<uint64_t>(n_floats), sizeof(float));
  const auto size = bytes ? checked_align_up(std::max<uint64_t>(*bytes, 1), kAlignment) : bytes;
  LIMPID_CHECK(ResourceError, size.has_value(), "an activation of {} elements is too large",
               n_floats);
  if (free_slots_.empty()) {
    // give() must not allocate, so the lists of free ranges and slots have room for all of them.
    const size_t n_slots = slots_.size() + 1;
    if (n_slots > free_slots_.capacity()) free_slots_.reserve(2 * n_slots);
    free_.reserve(free_slots_.capacity() + given_.capacity() + pieces_.size() + 1);
    slots_.push_back({});
    free_slots_.push_back(static_cast<int32_t>(n_slots - 1));
  }
  const Range range = find(*size);
  const int32_t id = free_slots_.back();
  free_slots_.pop_back();
  slots_[static_cast<size_t>(id)] = range;
  ++n_taken_;
  bytes_taken_ += *size;
  most_bytes_taken_ = std::max(most_bytes_taken_, bytes_taken_);
  return id;
}

ActivationArena::Range ActivationArena::find(uint64_t size) {
  if (size > most_bytes_ && size <= large_.size && !large_is_taken_) {
    large_is_taken_ = true;
    return {large_.begin, size};
  }
  const auto same = std::find_if(given_.rbegin(), given_.rend(),
                                 [&](const Range& range) { return range.size == size; });
  if (same != given_.rend()) {
    const Range range = *same;
    given_.erase(same.base() - 1);
    return range;
  }
  const auto fits = [&](const Range& range) { return range.size >= size; };
  auto found = std::ranges::find_if(free_, fits);
  if (found == free_.end()) {
    free_given();
    found = std::ranges::find_if(free_, fits);
  }
  if (found == free_.end()) {
    free_range(add_piece(std::max(size, kPiece)));
    found = std::ranges::find_if(free_, fits);
  }
  const Range range{found->begin, size};
  found->begin += size;
  found->size -= size;
  if (found->size == 0) free_.erase(found);
  return range;
}

void ActivationArena::give(int32_t id) noexcept {
  const Range range = slots_[static_cast<size_t>(id)];
  free_slots_.push_back(id);
  --n_taken_;
  bytes_taken_ -= range.size;
  if (large_is_taken_ && range.begin == large_.begin) {
    large_is_taken_ = false;
  } else if (range.size < kLeastKept) {
    free_range(range);
  } else {
    if (given_.size() == given_.capacity()) free_given();
    given_.push_back(range);
  }
  if (n_taken_ == 0) free_given();
}

void ActivationArena::free_given() noexcept {
  for (const Range& range : given_) free_range(range);
  given_.clear();
}

void ActivationArena::free_range(Range range) noexcept {
  auto next = std::ranges::upper_bound(free_, range.begin, {}, &Range::begin);
  if (next != free_.end() && range.begin + range.size == next->begin) {
    range.size += next->size;
    next = free_.erase(next);
  }
  if (next != free_.begin() && (next - 1)->begin + (next - 1)->size == range.begin) {
    (next - 1)->size += range.size;
  } else {
    free_.insert(next, range);
  }
}

}  // namespace limpid
