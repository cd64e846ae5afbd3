#include "base/paths.h"

#include <algorithm>
#include <system_error>

#include "base/text.h"

namespace limpid {

namespace fs = std::filesystem;

bool is_there(const fs::path& path) {
  std::error_code unseen;
  return fs::exists(path, unseen);
}

bool is_file(const fs::path& path) {
  std::error_code unseen;
  return fs::is_regular_file(path, unseen);
}

bool is_folder(const fs::path& path) {
  std::error_code unseen;
  return fs::is_directory(path, unseen);
}

uint64_t size_of_file(const fs::path& path) {
  std::error_code absent;
  const uint64_t size = fs::file_size(path, absent);
  return absent ? 0 : size;
}

std::vector<fs::path> entries_of(const fs::path& folder) {
  std::vector<fs::path> paths;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    paths.push_back(entry->path());
  }
  std::ranges::sort(paths);
  return paths;
}

std::string shown_path(const fs::path& path) {
  const std::string text = path.string();
  return trimmed(text).empty() ? "'" + text + "'" : text;
}

fs::path folder_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

}  // namespace limpid
