#include "base/open_files.h"

namespace limpid {

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
  slot->path = path;  // last: now the slot counts
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
