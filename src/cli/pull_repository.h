// `limpid pull ORGANISATION/MODEL`.
#pragma once

#include <optional>
#include <string>

namespace limpid::cli {

// Endings of what lies beside a file of a repository: the sign that it was verified, and what came
// of it so far.
inline constexpr char kMarkEnding[] = ".verified";
inline constexpr char kPartialEnding[] = ".part";

struct RepositoryPull {
  std::string repository;
  std::string revision = "main";
  std::string file;                   // a .gguf of it; "": safetensors, or the only .gguf
  std::optional<std::string> type{};  // in place of `file`: the .gguf that gguf_of_type chooses
  std::string endpoint;               // "": HF_ENDPOINT, or the hub
  std::string folder;                 // "": repository_folder()
};

// Where a repository's files are kept: models_directory() + "/ORGANISATION/MODEL".
std::string repository_folder(const std::string& repository);

// Where the repository "ORGANISATION/MODEL[:TYPE]" lies, as -m would have to name it; it is fetched
// if it is not here. `file` is a .gguf of it, "": gguf_of_type's. Throws as pull_repository does,
// and ResourceError when Ctrl-C ended it.
std::string path_of_repository(const std::string& repository, const std::string& file);

// Fetches what is not there yet; gives what -m has to name, or nothing when Ctrl-C ended it (what
// came is kept for the next time). Throws ArgumentError, ResourceError, FormatError.
std::string pull_repository(const RepositoryPull& pull);

}  // namespace limpid::cli
