// The memory of activations. The same sequence of calls of take() and give() on an empty arena
// returns the same addresses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace limpid {

// Address space is reserved before a step (the system provides a page when it is first written), so
// that a step makes no system calls.
//
// take() prefers a range of exactly its size that was given back in this step, and otherwise uses
// the lowest free range that is large enough. So a matrix gets lines that held a matrix of the same
// shape before. Threads share out the rows of all matrices alike, so a thread writes lines that its
// own core wrote last. Lines that another core wrote must be fetched from there before they are
// written; where two cores have no cache in common, that is slow (docs/adr/0018).
class ActivationArena {
 public:
  ActivationArena();
  ~ActivationArena();
  ActivationArena(const ActivationArena&) = delete;
  ActivationArena& operator=(const ActivationArena&) = delete;

  // Makes room for `n_ranges` ranges at a time: one of up to `largest_bytes`, the others of up to
  // `most_bytes`, taken and given back in any order. Throws ResourceError and then changes nothing.
  //
  // The sum of the sizes is not enough, because ranges that are given back in any order leave gaps.
  // Let n ranges of up to m bytes be needed at a time. When one is asked for, at most n - 1 are
  // taken, which divide the free memory into at most n gaps. In (2 n - 1) m bytes the gaps have at
  // least n m bytes together, so one of them has at least m. The large range has a place of its own
  // behind these bytes, which no smaller range takes.
  void reserve(int64_t n_ranges, uint64_t most_bytes, uint64_t largest_bytes);

  // 64-byte aligned memory with arbitrary content. Asks the system, or throws ResourceError, only
  // when more is taken than was reserved.
  int32_t take(int64_t n_floats);
  void give(int32_t id) noexcept;
  float* data(int32_t id) const {
    return reinterpret_cast<float*>(slots_[static_cast<size_t>(id)].begin);
  }

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
  Range add_piece(uint64_t n_bytes);
  Range find(uint64_t size);
  void free_range(Range range) noexcept;
  void free_given() noexcept;

  std::vector<Range> pieces_;
  std::vector<Range> free_;   // by address; neighbours merged
  std::vector<Range> given_;  // given back in this step and not in free_; the last is taken first
  std::vector<Range> slots_;  // taken, by id
  uint64_t most_bytes_ = 0;   // of a range that does not use the place of the large one
  uint64_t small_bytes_ = 0;  // reserved for those
  Range large_{};             // this place
  bool large_is_taken_ = false;
  std::vector<int32_t> free_slots_;  // last one is taken next
  int64_t n_taken_ = 0;
  uint64_t bytes_taken_ = 0;
  uint64_t most_bytes_taken_ = 0;
};

}  // namespace limpid
