// Files that a signal handler has to know about, in a list that it can read at any moment.
#pragma once

#include <atomic>
#include <cstddef>

namespace limpid {

// A handler may interrupt any instruction of any thread, so it must not wait for a lock. A slot of
// this list is therefore taken, filled and given back with atomic operations, and never freed: a
// handler that walks the list always finds valid slots. It may see one that is being changed. That
// is harmless, since the slot of the file that it looks for cannot change then.
class OpenFiles {
 public:
  // Adds a file at `path`. `key` names it for remove(); of a mapped file it is where the map of
  // `size` bytes begins. The text of `path` must live until then. Throws std::bad_alloc.
  void add(const char* path, const void* key, size_t size);
  // Does nothing where no file was added under that key.
  void remove(const void* key) noexcept;

  // Calls visit(path, key, size) for each file. Async-signal-safe where `visit` is.
  template <typename Visit>
  void each(Visit visit) const noexcept {
    for (const Slot* slot = first_; slot != nullptr; slot = slot->next) {
      const char* path = slot->path;
      const void* key = slot->key;
      const size_t size = slot->size;
      if (path != nullptr && path == slot->path) visit(path, key, size);
    }
  }

 private:
  struct Slot {
    std::atomic<bool> taken = true;
    std::atomic<const char*> path = nullptr;  // null: the slot says nothing
    std::atomic<const void*> key = nullptr;
    std::atomic<size_t> size = 0;
    Slot* next = nullptr;
  };

  std::atomic<Slot*> first_ = nullptr;
};

static_assert(std::atomic<const char*>::is_always_lock_free &&
              std::atomic<size_t>::is_always_lock_free);

}  // namespace limpid
