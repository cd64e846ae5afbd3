#include <algorithm>
#include <filesystem>

#include "base/atomic_file.h"
#include "base/check.h"
#include "base/folder_lock.h"
#include "base/paths.h"
#include "base/sha256.h"
#include "checkpoint/gguf_part.h"
#include "cli/http_file.h"
#include "cli/model_path.h"
#include "cli/output.h"
#include "cli/pull.h"
#include "cli/signals.h"

// The life of a file:
//   model.safetensors.part        the bytes so far; the next call continues after them
//   model.safetensors             complete, with the SHA-256 that the hub names
//   model.safetensors.verified    "SIZE SHA-256", so that a later call need not
//                                 read the file again to know it
namespace limpid::cli {
namespace {

namespace fs = std::filesystem;

// The mark of a verified file: a line beside it with its size and SHA-256.
fs::path mark_of(const fs::path& target) { return target.string() + kMarkEnding; }

std::string mark_text(const HubFile& file) {
  return fmt::format("{} {}\n", file.n_bytes, file.sha256.empty() ? "-" : file.sha256);
}

// Uses the mark, so that gigabytes need not be read to compute the digest again.
bool is_here(const HubFile& file, const fs::path& target) {
  // A small file without a checksum is fetched again: it may have changed without its size.
  if (file.sha256.empty() || size_of_file(target) != file.n_bytes) return false;
  const fs::path mark = mark_of(target);
  return is_there(target) && is_file(mark) && read_text(mark) == mark_text(file);
}

// Throws, and removes the file, when its SHA-256 is not the one that the hub names.
void verify(const HubFile& file, const fs::path& part) {
  if (file.sha256.empty()) return;
  const std::string found = sha256_of_file(part);
  if (found == file.sha256) return;
  fs::remove(part);
  throw ResourceError(
      fmt::format("{} arrived damaged: sha256 {}, expected {}; it was deleted, run the same again",
                  file.name, found, file.sha256));
}

// Fetches the files that are not here, each into NAME.part, which is renamed when its digest is
// right. Returns the number of bytes of these files.
uint64_t fetch_missing(const RepositoryPull& pull, const Hub& hub, const Hub::Listing& listing,
                       const std::vector<HubFile>& files, const fs::path& folder) {
  const InterruptGuard interrupt({}, OnSigterm::kInterrupt);
  make_folder(folder);
  const FolderLock lock(folder);  // two processes would write to the same .part files
  ProgressBar bar("downloading");
  uint64_t n_total = 0;
  uint64_t n_before = 0;  // in the files before this one
  uint64_t n_fetched = 0;
  for (const HubFile& file : files) n_total += file.n_bytes;
  for (const HubFile& file : files) {
    const fs::path target = folder / file.name;
    if (!is_here(file, target)) {
      make_folder(target.parent_path());
      const fs::path part = target.string() + kPartialEnding;
      if (file.sha256.empty()) fs::remove(part);
      const HttpRequest request = hub.request_for(pull.repository, listing.revision, file.name);
      const bool complete = http_fetch(request, part, file.n_bytes, [&](uint64_t n) {
        bar.show(n_before + n, n_total,
                 fmt::format("{}: {} of {}", file.name, format_bytes(n_before + n),
                             format_bytes(n_total)));
        return !interrupt.interrupted();
      });
      LIMPID_CHECK(
          Interrupted, complete, "stopped; what came is kept, {} goes on",
          pull.type ? "the same command" : fmt::format("`limpid pull {}`", pull.repository));
      verify(file, part);
      fs::rename(part, target);
      write_file(mark_of(target), mark_text(file));  // replaces a link, does not follow it
      n_fetched += file.n_bytes;
    }
    n_before += file.n_bytes;
  }
  return n_fetched;
}

// Whether the files of a folder are a whole model of safetensors: there are weights, and no file is
// partial but a .gguf, which is another model.
bool is_whole(const std::vector<std::string>& names) {
  const auto is_part = [](const std::string& name) {
    return name.ends_with(kPartialEnding) && !name.ends_with(std::string(".gguf") + kPartialEnding);
  };
  return std::ranges::any_of(
             names, [](const std::string& name) { return name.ends_with(".safetensors"); }) &&
         std::ranges::none_of(names, is_part);
}

}  // namespace

std::string repository_folder(const std::string& repository) {
  return models_directory() + "/" + repository;
}

// Looks at the files that are here first, so a model that was fetched opens without a network.
std::string path_of_repository(const std::string& repository, const std::string& file,
                               bool is_offline) {
  RepositoryPull pull;
  const size_t colon = std::min(repository.find(':'), repository.size());
  pull.repository = repository.substr(0, colon);
  const std::string type = repository.substr(std::min(colon + 1, repository.size()));
  LIMPID_CHECK(ArgumentError, is_repository_name(pull.repository),
               "-hf {}: give ORGANISATION/MODEL, or ORGANISATION/MODEL:TYPE", repository);
  const fs::path folder = repository_folder(pull.repository);
  std::vector<std::string> names;
  for (const fs::path& path : entries_of(folder)) names.push_back(path.filename().string());
  const std::string gguf = file.empty() ? gguf_of_type(names, type) : file;
  const std::vector<std::string> parts = all_gguf_parts(gguf);
  if (!gguf.empty() &&
      std::ranges::all_of(parts, [&](const auto& part) { return is_there(folder / part); }))
    return folder / parts.front();
  if (file.empty() && type.empty() && is_there(folder / "config.json") && is_whole(names))
    return folder;
  LIMPID_CHECK(ResourceError, !is_offline,
               "{}: {} has no such model, and --offline forbids fetching it; leave --offline out "
               "once, or give a file with -m",
               repository, folder.string());
  pull.file = file;
  pull.type = type;
  return pull_repository(pull);
}

std::string pull_repository(const RepositoryPull& pull) {
  const Hub hub(pull.endpoint);
  const Hub::Listing listing = hub.list(pull.repository, pull.revision);
  const std::vector<HubFile> files = choose_files(pull, listing);
  const fs::path folder = pull.folder.empty() ? repository_folder(pull.repository) : pull.folder;
  const uint64_t n_fetched = fetch_missing(pull, hub, listing, files, folder);
  print_log(fmt::format("{} at {}: {}, {} fetched", pull.repository, listing.revision,
                        count(files.size(), "file"), format_bytes(n_fetched)));
  const std::string& first = files.front().name;
  return files.size() == 1 || first.ends_with(".gguf") ? (folder / first).string()
                                                       : folder.string();
}

}  // namespace limpid::cli
