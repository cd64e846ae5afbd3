// A folder that files are opened in by name, and out of which no name and no link leads.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/mapped_file.h"

namespace limpid {

class ModelFolder {
 public:
  // Throws ResourceError when it cannot be resolved.
  explicit ModelFolder(std::string path);

  const std::string& path() const { return path_; }

  // Whether something is there under that name; a dangling link counts.
  bool contains(std::string_view name) const;
  // Throws FormatError for a name with a separator, NUL, `.` or `..`.
  void check_name(std::string_view name) const;
  // Where `name` really lies. Links may lead to another place in the folder, and, when it is a
  // snapshot of Hugging Face's cache (…/snapshots/REVISION), into the `blobs` beside `snapshots`.
  // Throws FormatError as check_name does and for a link that leads
  // elsewhere; ResourceError when there is no such file.
  std::string resolve(std::string_view name) const;
  std::shared_ptr<const MappedFile> open(std::string_view name) const;

 private:
  std::string path_;   // as given
  std::string real_;   // with links resolved
  std::string blobs_;  // of the cache; empty: this is no snapshot
};

}  // namespace limpid
