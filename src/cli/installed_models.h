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

// Removes a model's files that `pull` has brought, half ones included; what else lies in their
// folder stays. Gives what was there. Throws ArgumentError when nothing was, ResourceError.
InstalledModel remove_model(const std::string& name);

}  // namespace limpid::cli
