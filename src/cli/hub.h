// Repositories of models, as the Hugging Face hub and its mirrors serve them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace limpid::cli {

// Whether `name` has the form of a repository's name, "organisation/model".
bool is_repository_name(std::string_view name);

struct HubFile {
  std::string name;  // a plain file name; files in folders of the repository are not listed
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
  std::string url_of(const std::string& repository, const std::string& revision,
                     const std::string& file) const;
  const std::string& token() const { return token_; }

 private:
  std::string endpoint_;
  std::string token_;
};

// The files of a model: those that the reader of such folders knows, or the one GGUF file (named
// `gguf`, or the only one of a repository without safetensors). Throws ArgumentError, which lists
// the files to choose from.
std::vector<HubFile> choose_files(const std::string& repository, const Hub::Listing& listing,
                                  const std::string& gguf);

// Which of these names of files is the .gguf that `repository:type` means, as llama.cpp reads it:
// the first whose name contains `type`, in letters of either case; "" means Q4_K_M, or else the
// first of all. Returns "" if no name fits. The vision part of a model (mmproj) is never chosen.
std::string gguf_of_type(const std::vector<std::string>& names, std::string_view type);

}  // namespace limpid::cli
