// A lock on a folder, so that only one process writes into it at a time.
#pragma once

#include <string>
#include <utility>

namespace limpid {

// Holds the lock until it is destroyed; the system releases it when the process ends. A folder on a
// file system without locks is not locked.
class FolderLock {
 public:
  FolderLock() = default;  // of no folder
  // Throws ArgumentError when another process has the lock, ResourceError for a folder that cannot
  // be opened.
  explicit FolderLock(const std::string& path);
  FolderLock(FolderLock&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  FolderLock& operator=(FolderLock&&) = delete;
  ~FolderLock();

 private:
  int descriptor_ = -1;
};

}  // namespace limpid
