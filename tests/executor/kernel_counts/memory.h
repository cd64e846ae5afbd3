// Memory of a device that counts: which bytes a launch reads and writes, and how often it asks for
// them. Hardware moves memory in sectors of 32 bytes, and the 32 items of a warp ask together: what
// they read at the same time from one sector is one request. Items run one after the other here, so
// the n-th accesses of a warp's items count as one. That is what happens as long as the items take
// the same way through the kernel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

namespace limpid::counts {

inline constexpr uint64_t kSectorBytes = 32;
inline constexpr int kWarpItems = 32;

// What one launch did with a buffer.
struct Traffic {
  uint64_t bytes = 0;      // different bytes read, and different bytes written
  uint64_t of_groups = 0;  // bytes of the different sectors of each group, added up
  uint64_t asked = 0;      // bytes of all sectors that warps asked for
};

// Bytes, and marks of those that were touched.
class Memory {
 public:
  explicit Memory(uint64_t n_bytes)
      : data_(n_bytes), marks_(n_bytes), last_group_(n_bytes / kSectorBytes + 1) {}

  uint64_t n_bytes() const { return data_.size(); }
  std::byte* data() { return data_.data(); }
  // An access of the item that runs now. Throws std::out_of_range, and std::logic_error for an
  // address that is not a multiple of n.
  std::byte* touch(int64_t offset, uint64_t n, bool is_store);
  // What happened since the last call.
  Traffic take_traffic();

 private:
  std::vector<std::byte> data_;
  std::vector<uint8_t> marks_;        // 1: read, 2: written
  std::vector<uint64_t> last_group_;  // of each sector
  Traffic traffic_;
};

// What runs now.
struct Now {
  int group_x = 0;
  int group_y = 0;
  int groups_x = 0;
  int item = 0;
  int n_items = 0;
  uint64_t group = 0;                // counts all groups of all launches
  uint64_t n_fused = 0;              // FMAs
  uint64_t n_exp = 0;                // exponentials
  std::vector<uint64_t> n_accesses;  // of each item of the group
  // Sectors of each warp's n-th access: [warp][n].
  std::vector<std::vector<std::vector<uintptr_t>>> requests;

  void begin_group();
};
Now& now();

// An element that is loaded or stored when it is used.
template <class T>
class Element {
 public:
  Element(Memory* memory, int64_t offset) : memory_(memory), offset_(offset) {}
  operator T() const {  // NOLINT(google-explicit-constructor)
    return *reinterpret_cast<const T*>(memory_->touch(offset_, sizeof(T), false));
  }
  template <class U>
  const Element& operator=(const U& value) const {
    static_assert(!std::is_const_v<T>);
    const T loaded = static_cast<T>(value);
    *reinterpret_cast<T*>(memory_->touch(offset_, sizeof(T), true)) = loaded;
    return *this;
  }

 private:
  Memory* memory_;
  int64_t offset_;
};

// A pointer into a memory.
template <class T>
class Global {
 public:
  Global() = default;
  explicit Global(Memory* memory, int64_t offset = 0) : memory_(memory), offset_(offset) {}
  template <class U, class = std::enable_if_t<std::is_same_v<const U, T>>>
  Global(const Global<U>& other)  // NOLINT(google-explicit-constructor)
      : memory_(other.memory()), offset_(other.offset()) {}
  template <class U, class = std::enable_if_t<!std::is_same_v<const U, T> && !std::is_same_v<U, T>>,
            class = void>
  explicit Global(const Global<U>& other) : memory_(other.memory()), offset_(other.offset()) {}

  Memory* memory() const { return memory_; }
  int64_t offset() const { return offset_; }
  Element<T> operator[](int64_t i) const {
    return {memory_, offset_ + i * static_cast<int64_t>(sizeof(T))};
  }
  Element<T> operator*() const { return (*this)[0]; }
  Global operator+(int64_t i) const {
    return Global(memory_, offset_ + i * static_cast<int64_t>(sizeof(T)));
  }
  Global operator-(int64_t i) const { return *this + -i; }
  Global& operator+=(int64_t i) { return *this = *this + i; }

 private:
  Memory* memory_ = nullptr;
  int64_t offset_ = 0;
};

}  // namespace limpid::counts
