// `limpid pull ORGANISATION/MODEL`.
#pragma once

#include <string>

namespace limpid::cli {

struct RepositoryPull {
  std::string repository;
  std::string revision = "main";
  std::string file;      // a .gguf of it; "": safetensors, or the only .gguf
  std::string endpoint;  // "": HF_ENDPOINT, or the hub
  std::string folder;    // "": repository_folder()
};

// Where a repository's files are kept: models_directory() + "/ORGANISATION/MODEL".
std::string repository_folder(const std::string& repository);

// Fetches what is not there yet; gives what -m has to name, or nothing when Ctrl-C ended it (what
// came is kept for the next time). Throws ArgumentError, ResourceError, FormatError.
std::string pull_repository(const RepositoryPull& pull);

}  // namespace limpid::cli
