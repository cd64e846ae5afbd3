// First fit over a list of free ranges, sorted by address. A step takes and gives back the same
// sizes in the same order as the step before it, so it gets the same addresses. The lists have room
// for as many ranges as can be free, so that give() allocates nothing.
#include "executor/cpu/activation_arena.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <optional>

#include "base/check.h"
#include "base/checked.h"

namespace limpid {
namespace {

constexpr uint64_t kAlignment = 64;
constexpr uint64_t kPiece = uint64_t{64} << 20;  // the least that is asked for
constexpr size_t kSlots = 1024;  // activations alive at once without growing a table

}  // namespace

ActivationArena::ActivationArena() {
  free_.reserve(2 * kSlots);
  slots_.reserve(kSlots);
  free_slots_.reserve(kSlots);
}

ActivationArena::~ActivationArena() {
  for (const Range& piece : pieces_) ::munmap(piece.begin, piece.size);
}

void ActivationArena::reserve(int64_t n_ranges, uint64_t most_bytes, uint64_t largest_bytes) {
  const auto most = checked_align_up(most_bytes, kAlignment);
  const auto largest = checked_align_up(largest_bytes, kAlignment);
  const auto of_all = most ? checked_mul(static_cast<uint64_t>(2 * n_ranges - 1), *most) : most;
  const auto of_largest = largest ? checked_mul<uint64_t>(2, *largest) : largest;
  const auto n_bytes = of_all && of_largest ? checked_add(*of_all, *of_largest) : std::nullopt;
  LIMPID_CHECK(ResourceError, n_bytes.has_value(),
               "{} activations of {} bytes are too large; use a smaller batch", n_ranges,
               most_bytes);
  if (std::ranges::any_of(pieces_, [&](const Range& piece) { return piece.size >= *n_bytes; }))
    return;
  const auto n_dropped = n_taken_ == 0 ? std::ssize(pieces_) : 0;
  add_piece(*n_bytes);
  if (n_dropped == 0) return;
  for (auto i = pieces_.begin(); i != pieces_.begin() + n_dropped; ++i) ::munmap(i->begin, i->size);
  pieces_.erase(pieces_.begin(), pieces_.begin() + n_dropped);
  free_.assign(1, pieces_.front());
}

void ActivationArena::add_piece(uint64_t n_bytes) {
  pieces_.reserve(pieces_.size() + 1);
  free_.reserve(slots_.capacity() + pieces_.capacity() + 1);
  const uint64_t size = std::max(n_bytes, kPiece);
  void* memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  LIMPID_CHECK(ResourceError, memory != MAP_FAILED,
               "cannot reserve {} bytes for activations ({}); use a smaller batch", size,
               std::strerror(errno));
  ::madvise(memory, size, MADV_HUGEPAGE);
  pieces_.push_back({static_cast<std::byte*>(memory), size});
  free_range(pieces_.back());
}

int32_t ActivationArena::take(int64_t n_floats) {
  const auto bytes = checked_mul<uint64_t>(static_cast<uint64_t>(n_floats), sizeof(float));
  const auto size = bytes ? checked_align_up(std::max<uint64_t>(*bytes, 1), kAlignment) : bytes;
  LIMPID_CHECK(ResourceError, size.has_value(), "an activation of {} elements is too large",
               n_floats);
  const auto fits = [&](const Range& range) { return range.size >= *size; };
  auto found = std::ranges::find_if(free_, fits);
  if (found == free_.end()) {
    add_piece(*size);
    found = std::ranges::find_if(free_, fits);
  }
  if (free_slots_.empty()) {
    // give() must not allocate, so the lists of free ranges and slots have room for all of them.
    const size_t n_slots = slots_.size() + 1;
    if (n_slots > free_slots_.capacity()) free_slots_.reserve(2 * n_slots);
    if (n_slots + pieces_.size() >= free_.capacity()) {
      const auto at = found - free_.begin();
      free_.reserve(2 * n_slots + pieces_.size());
      found = free_.begin() + at;
    }
    slots_.push_back({});
    free_slots_.push_back(static_cast<int32_t>(n_slots - 1));
  }
  const int32_t id = free_slots_.back();
  free_slots_.pop_back();
  slots_[static_cast<size_t>(id)] = {found->begin, *size};
  found->begin += *size;
  found->size -= *size;
  if (found->size == 0) free_.erase(found);
  ++n_taken_;
  bytes_taken_ += *size;
  most_bytes_taken_ = std::max(most_bytes_taken_, bytes_taken_);
  return id;
}

void ActivationArena::give(int32_t id) noexcept {
  const Range& slot = slots_[static_cast<size_t>(id)];
  free_slots_.push_back(id);
  --n_taken_;
  bytes_taken_ -= slot.size;
  free_range(slot);
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
