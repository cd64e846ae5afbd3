#include "base/open_files.h"

namespace limpid {

// Takes the first slot that is free, or adds a new one at the front of the list.
void OpenFiles::add(const char* path, const void* key, size_t size) {
  Slot* slot = first_;
  while (slot != nullptr && slot->taken.exchange(true)) slot = slot->next;
  if (slot == nullptr) {
    slot = new Slot;
    slot->next = first_;
    while (!first_.compare_exchange_weak(slot->next, slot)) {
    }
  }
  slot->key = key;
  slot->size = size;
  slot->path = path;  // last: from now on the slot holds a file
}

void OpenFiles::remove(const void* key) noexcept {
  for (Slot* slot = first_; slot != nullptr; slot = slot->next) {
    if (slot->path == nullptr || slot->key != key) continue;
    slot->path = nullptr;
    slot->taken = false;
    return;
  }
}

}  // namespace limpid
