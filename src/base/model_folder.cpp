#include "base/model_folder.h"

#include <filesystem>
#include <system_error>

#include "base/check.h"
#include "base/paths.h"
#include "base/printable.h"

namespace limpid {
namespace {

namespace fs = std::filesystem;

// Whether the resolved `path` is below the resolved `folder`. "/a/model2" is not in "/a/model".
bool lies_in(const std::string& path, const std::string& folder) {
  return path.size() > folder.size() && path.starts_with(folder) && path[folder.size()] == '/';
}

}  // namespace

ModelFolder::ModelFolder(std::string path) : path_(std::move(path)) {
  std::error_code error;
  const fs::path real = fs::canonical(path_, error);
  LIMPID_CHECK(ResourceError, !error, "cannot open {}: {}", shown_path(path_), error.message());
  real_ = real.string();
  for (const fs::path& revision : {real, real.parent_path()}) {
    if (revision.parent_path().filename() == "snapshots")
      blobs_ = (revision.parent_path().parent_path() / "blobs").string();
  }
}

bool ModelFolder::contains(std::string_view name) const {
  std::error_code error;
  return fs::exists(fs::symlink_status(fs::path(path_) / name, error));
}

std::optional<std::string> ModelFolder::only_name_ending(std::string_view ending) const {
  std::optional<std::string> found;
  for (const fs::path& entry : entries_of(path_)) {
    std::string name = entry.filename().string();
    if (!name.ends_with(ending)) continue;
    if (found) return std::nullopt;
    found = std::move(name);
  }
  return found;
}

void ModelFolder::check_name(std::string_view name) const {
  const bool plain = !name.empty() && name != "." && name != ".." &&
                     name.find_first_of(std::string_view("/\\\0", 3)) == std::string_view::npos;
  if (!plain) {
    throw_format_error(path_, printable(name),
                       "is not a plain file name: a model's files are in its own folder");
  }
}

std::string ModelFolder::resolve(std::string_view name) const {
  check_name(name);
  std::error_code error;
  std::string real = fs::canonical(fs::path(real_) / name, error).string();
  LIMPID_CHECK(ResourceError, !error, "cannot open {}/{}: {}", path_, printable(name),
               error.message());
  if (!lies_in(real, real_) && (blobs_.empty() || !lies_in(real, blobs_))) {
    throw_format_error(path_, printable(name),
                       "is a link that leads out of the model's folder; copy the file there");
  }
  return real;
}

std::shared_ptr<const MappedFile> ModelFolder::open(std::string_view name) const {
  return MappedFile::open(resolve(name));
}

}  // namespace limpid
