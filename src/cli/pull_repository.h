// `limpid pull ORGANISATION/MODEL`.
#pragma once

#include <optional>
#include <string>

namespace limpid::cli {

// Endings of the files beside a file of a repository: the mark that it was verified, and the part
// that was fetched so far.
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

// The path of the repository "ORGANISATION/MODEL[:TYPE]", for -m. It is fetched if it is not here,
// unless `is_offline`: then ResourceError. `file` is a .gguf of it, "": gguf_of_type's. Throws as
// pull_repository does.
std::string path_of_repository(const std::string& repository, const std::string& file,
                               bool is_offline);

// Fetches the files that are not here yet. Returns the path for -m. Throws Interrupted when Ctrl-C
// ended it; the bytes that came are kept for the next time. Throws ArgumentError, ResourceError,
// FormatError.
std::string pull_repository(const RepositoryPull& pull);

}  // namespace limpid::cli
