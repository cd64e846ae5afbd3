// Memory of activations: the same sequence of takes and gives after an empty arena yields the same
// addresses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace limpid {

// Address space is reserved ahead (pages come when they are first written), so that a step asks the
// system for nothing. Free ranges are taken lowest first and merged when given back.
class ActivationArena {
 public:
  ActivationArena();
  ~ActivationArena();
  ActivationArena(const ActivationArena&) = delete;
  ActivationArena& operator=(const ActivationArena&) = delete;

  // Room for `n_ranges` that are taken at once, of up to `most_bytes` each, one of them of up to
  // `largest_bytes`, in whatever order they are taken and given. Throws ResourceError, changing
  // nothing.
  //
  // Given back in any order, ranges leave gaps, so that their sum would not do. With n ranges at
  // once of up to m bytes, at most n - 1 are taken when another one is asked for: they take
  // (n - 1) m bytes of 2 n m - m and leave at most n gaps, which have n m bytes between them, so
  // one of the gaps has m. The one of l bytes may lie among them: then l bytes more do. Lowest
  // first, so the others never reach beyond (2 n - 1) m + l, and from there on the large one has
  // l bytes of its own.
  void reserve(int64_t n_ranges, uint64_t most_bytes, uint64_t largest_bytes);

  // 64-byte aligned memory with arbitrary content. Asks the system, or throws ResourceError, only
  // when more is taken than was reserved.
  int32_t take(int64_t n_floats);
  void give(int32_t id) noexcept;
  float* data(int32_t id) const { return slots_[static_cast<size_t>(id)].data; }

  int64_t n_taken() const { return n_taken_; }
  // The most that was taken at once so far.
  uint64_t most_bytes_taken() const { return most_bytes_taken_; }
  // Pieces of address space asked for so far: stays the same when steps find room.
  int64_t n_pieces() const { return static_cast<int64_t>(pieces_.size()); }

 private:
  struct Range {
    std::byte* begin;
    uint64_t size;
  };
  struct Slot {
    float* data;
    uint64_t size;
  };
  void add_piece(uint64_t n_bytes);
  void free_range(Range range) noexcept;

  std::vector<Range> pieces_;
  std::vector<Range> free_;  // by address; neighbours merged
  std::vector<Slot> slots_;
  std::vector<int32_t> free_slots_;  // last one is taken next
  int64_t n_taken_ = 0;
  uint64_t bytes_taken_ = 0;
  uint64_t most_bytes_taken_ = 0;
};

}  // namespace limpid
