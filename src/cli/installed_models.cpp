#include "cli/installed_models.h"

#include <algorithm>
#include <filesystem>

#include "base/check.h"
#include "cli/hub.h"
#include "cli/model_path.h"
#include "cli/output_path.h"
#include "cli/pull_repository.h"

// A folder counts as a repository that was pulled when a mark or a partial file of pull lies in it.
// A folder that a user put there by hand has neither, and is left alone.
namespace limpid::cli {
namespace {

namespace fs = std::filesystem;

// The files that pull leaves in a repository's folder: complete ones, their marks, and partial
// ones.
std::vector<fs::path> pulled_files(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const fs::path& path : entries_of(folder)) {
    if (path.extension() == kPartialEnding) files.push_back(path);
    if (path.extension() != kMarkEnding) continue;
    files.push_back(path);
    files.push_back(fs::path(path).replace_extension());
  }
  return files;
}

// Whether or not it is here; then its size is 0.
InstalledModel named(const NamedModel& model) {
  const fs::path path = fs::path(models_directory()) / model.file_name();
  return {std::string(model.name), path.string(), size_of_file(path)};
}

InstalledModel repository(const std::string& name) {
  InstalledModel model{name, repository_folder(name), 0};
  for (const fs::path& path : pulled_files(model.path)) model.n_bytes += size_of_file(path);
  return model;
}

}  // namespace

std::vector<InstalledModel> installed_models() {
  std::vector<InstalledModel> models;
  for (const NamedModel& model : named_models()) {
    if (fs::exists(named(model).path)) models.push_back(named(model));
  }
  for (const fs::path& organisation : entries_of(models_directory())) {
    for (const fs::path& folder : entries_of(organisation)) {
      const std::string name = organisation.filename().string() + "/" + folder.filename().string();
      if (is_repository_name(name) && !pulled_files(folder).empty())
        models.push_back(repository(name));
    }
  }
  return models;
}

// Removes marks and parts too, then the folders that became empty.
InstalledModel remove_model(const std::string& name) {
  const NamedModel* short_name = find_named_model(name);
  LIMPID_CHECK(ArgumentError, short_name != nullptr || is_repository_name(name),
               "'{}' is not a model that pull knows: give a name of limpid pull --list", name);
  InstalledModel model = short_name != nullptr ? named(*short_name) : repository(name);
  const std::vector<fs::path> files =
      short_name != nullptr ? std::vector<fs::path>{model.path} : pulled_files(model.path);
  const bool is_here = std::ranges::any_of(
      files, [](const fs::path& path) { return fs::exists(fs::symlink_status(path)); });
  LIMPID_CHECK(ArgumentError, is_here, "{} is not on this machine (limpid pull --list)", name);
  std::error_code error;
  for (const fs::path& path : files) {
    fs::remove(path, error);
    LIMPID_CHECK(ResourceError, !error, "cannot remove {}: {}", path.string(), error.message());
  }
  if (short_name == nullptr) {  // its folder and its organisation's, where nothing else is in them
    fs::remove(model.path, error);
    fs::remove(fs::path(model.path).parent_path(), error);
  }
  return model;
}

}  // namespace limpid::cli
