// Models that `limpid pull` has put on this machine.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace limpid::cli {

struct InstalledModel {
  std::string name;  // what -m takes: a short name, or ORGANISATION/MODEL
  std::string path;  // the file, or the repository's folder
  uint64_t n_bytes = 0;
};

// Those in models_directory(), by name. Of a repository only what `pull` has finished counts.
std::vector<InstalledModel> installed_models();

// Removes the files of a model that `pull` fetched, partial ones included; other files in their
// folder stay. Returns what was removed. Throws ArgumentError when nothing was here, ResourceError.
InstalledModel remove_model(const std::string& name);

}  // namespace limpid::cli
