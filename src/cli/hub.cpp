// Two addresses of the hub are enough:
//   ENDPOINT/api/models/ORGANISATION/MODEL/revision/main?blobs=true    the list of files, as JSON
//   ENDPOINT/ORGANISATION/MODEL/resolve/COMMIT/model.safetensors       a file
// The list names the commit that `main` is now. Files are fetched from that commit, so a change of
// the repository in between cannot mix two versions; and a revision names neither files nor
// folders here, so it may have slashes.
//
// All names in a listing come from the network and become file names here. So a name must be plain
// (is_plain_name): "../../.bashrc" and "a/b" are not fetched, and a name cannot contain an escape
// sequence.
#include <fmt/ranges.h>

#include <algorithm>
#include <ranges>

#include "base/check.h"
#include "base/json_file.h"
#include "base/model_folder.h"
#include "base/text.h"
#include "checkpoint/gguf_part.h"
#include "cli/flags.h"
#include "cli/http_file.h"
#include "cli/pull.h"

namespace limpid::cli {
namespace {

constexpr uint64_t kLongestListing = uint64_t{16} << 20;
constexpr std::string_view kSafetensors = ".safetensors";
constexpr std::string_view kPooling = "1_Pooling/config.json";  // of an embedding model
// Of a folder of safetensors, besides the weights and kTokenizerFiles.
constexpr std::string_view kFolderFiles[] = {"config.json", "generation_config.json",
                                             "model.safetensors.index.json", kPooling};

bool is_plain(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' || c == '.';
}

// Letters, digits and "-_.", not beginning with a dot: neither a path nor anything that a URL or a
// terminal would take for something else.
bool is_plain_name(std::string_view name) {
  return !name.empty() && name.front() != '.' && name.size() <= 200 &&
         std::ranges::all_of(name, is_plain);
}

// Whether it may be a branch, tag or commit, whose name may have slashes: "refs/pr/1".
bool is_revision(std::string_view revision) {
  return !revision.empty() &&
         std::ranges::all_of(revision | std::views::split('/'), [](const auto& part) {
           return is_plain_name({part.begin(), part.end()});
         });
}

// The digest is compared later, so a wrong form would only look like a damaged file.
bool is_sha256(std::string_view text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == text.npos;
}

// A file of the listing, or nothing for a file in a folder (but kPooling). An entry is
//   {"rfilename": "model.safetensors", "size": 988097824, "lfs": {"sha256": "…", "size":
//   988097824}}
// where "lfs" is there for large files only.
std::optional<HubFile> read_file(const JsonPlace& place) {
  HubFile file;
  file.name = place["rfilename"].string();
  if (!is_plain_name(file.name) && file.name != kPooling) return std::nullopt;
  int64_t n_bytes = -1;
  if (const auto size = place.find("size")) n_bytes = size->integer();
  if (const auto large = place.find("lfs")) {
    n_bytes = (*large)["size"].integer();
    file.sha256 = (*large)["sha256"].string();
    if (!is_sha256(file.sha256)) large->fail("has no SHA-256");
  }
  if (n_bytes < 0) place.fail("has no size");
  file.n_bytes = static_cast<uint64_t>(n_bytes);
  return file;
}

// "model-00001-of-00003.safetensors"
bool is_shard(std::string_view name) {
  return name.starts_with("model-") && name.ends_with(kSafetensors) &&
         name.find("-of-") != std::string_view::npos;
}

// The .gguf files of models.
std::vector<std::string_view> gguf_names(const Hub::Listing& listing) {
  std::vector<std::string_view> names;
  for (const HubFile& file : listing.files) {
    if (is_gguf_of_model(file.name)) names.push_back(file.name);
  }
  return names;
}

// A repository of GGUF files usually holds one model in many types, so the user must choose: of
// "model-Q4_K_M.gguf" and "model-Q8_0.gguf", --file says which. Any part of a model in parts stands
// for all.
std::vector<HubFile> choose_gguf(const std::string& repository, const Hub::Listing& listing,
                                 std::string gguf) {
  const std::vector<std::string_view> names = gguf_names(listing);
  if (gguf.empty() && names.size() == 1) gguf = names.front();
  const auto find = [&](const std::string& name) {
    return std::ranges::find(listing.files, name, &HubFile::name);
  };
  if (find(gguf) != listing.files.end()) {
    std::vector<HubFile> files;
    for (const std::string& part : all_gguf_parts(gguf)) {
      const auto file = find(part);
      LIMPID_CHECK(ResourceError, file != listing.files.end(), "{} has {} but not {}", repository,
                   gguf, part);
      files.push_back(*file);
    }
    return files;
  }
  constexpr size_t kShown = 12;
  throw ArgumentError(
      fmt::format("{} {}: name one of its files with --file: {}{}", repository,
                  gguf.empty() ? "holds several models" : "has no file " + gguf,
                  fmt::join(names.begin(), names.begin() + std::min(names.size(), kShown), ", "),
                  names.size() > kShown ? ", ..." : ""));
}

}  // namespace

bool is_repository_name(std::string_view name) {
  const size_t slash = name.find('/');
  return slash != std::string_view::npos && is_plain_name(name.substr(0, slash)) &&
         is_plain_name(name.substr(slash + 1));
}

Hub::Hub(std::string endpoint) : endpoint_(std::move(endpoint)), token_(environment("HF_TOKEN")) {
  if (endpoint_.empty()) endpoint_ = environment("HF_ENDPOINT");
  if (endpoint_.empty()) endpoint_ = "https://huggingface.co";
  while (endpoint_.ends_with('/')) endpoint_.pop_back();
  LIMPID_CHECK(ArgumentError, endpoint_.starts_with("https://") || endpoint_.starts_with("http://"),
               "the endpoint {} does not begin with https:// or http://", endpoint_);
}

Hub::Listing Hub::list(const std::string& repository, const std::string& revision) const {
  LIMPID_CHECK(ArgumentError, is_repository_name(repository),
               "{} is not a repository: give ORGANISATION/MODEL", repository);
  LIMPID_CHECK(ArgumentError, is_revision(revision), "'{}' is not a branch, tag or commit",
               revision);
  const std::string url = fmt::format("{}/api/models/{}/revision/{}?blobs=true", endpoint_,
                                      repository, replaced(revision, "/", "%2F"));
  const JsonFile json(url, http_get({url, token_}, kLongestListing));
  Listing listing;
  listing.revision = json.root()["sha"].string();
  if (!is_plain_name(listing.revision)) json.root()["sha"].fail("is not a commit");
  for (const JsonPlace& entry : json.root()["siblings"].elements()) {
    if (auto file = read_file(entry)) listing.files.push_back(std::move(*file));
  }
  return listing;
}

HttpRequest Hub::request_for(const std::string& repository, const std::string& revision,
                             const std::string& file) const {
  return {fmt::format("{}/{}/resolve/{}/{}", endpoint_, repository, revision, file), token_};
}

// Examples of names: "Qwen3-0.6B-Q8_0.gguf", "qwen3-0.6b-q8_0.gguf".
std::string gguf_of_type(const std::vector<std::string>& names, std::string_view type) {
  constexpr std::string_view kUsual = "q4_k_m";
  const auto lower = [](unsigned char c) { return std::tolower(c); };
  const std::string_view wanted = type.empty() ? kUsual : type;
  std::string first;
  for (const std::string& name : names) {
    if (!is_gguf_of_model(name)) continue;
    if (!std::ranges::search(name, wanted, {}, lower, lower).empty()) return name;
    if (first.empty()) first = name;
  }
  return type.empty() ? first : "";
}

// safetensors count before .gguf files, and one whole file before its shards: a repository may have
// both.
std::vector<HubFile> choose_files(const RepositoryPull& pull, const Hub::Listing& listing) {
  constexpr std::string_view kWhole = "model.safetensors";
  std::string gguf = pull.file;
  if (pull.type && gguf.empty()) {
    std::vector<std::string> names;
    for (const HubFile& file : listing.files) names.push_back(file.name);
    gguf = gguf_of_type(names, *pull.type);
    LIMPID_CHECK(ArgumentError, !gguf.empty() || pull.type->empty(),
                 "{} has no .gguf of type {}: {}", pull.repository, *pull.type,
                 fmt::join(names, ", "));
  }
  const bool in_one = std::ranges::count(listing.files, kWhole, &HubFile::name) > 0;
  const auto has_weights = [&](const HubFile& file) {
    return file.name == kWhole || (!in_one && is_shard(file.name));
  };
  const bool has_safetensors = std::ranges::any_of(listing.files, has_weights);
  if (!gguf.empty() || (!has_safetensors && !gguf_names(listing).empty()))
    return choose_gguf(pull.repository, listing, gguf);
  LIMPID_CHECK(ArgumentError, has_safetensors,
               "{} has neither model.safetensors nor a .gguf file; nothing in it can be read",
               pull.repository);
  std::vector<HubFile> files;
  for (const HubFile& file : listing.files) {
    if (has_weights(file) || std::ranges::count(kFolderFiles, file.name) > 0 ||
        std::ranges::count(kTokenizerFiles, file.name) > 0)
      files.push_back(file);
  }
  return files;
}

}  // namespace limpid::cli
