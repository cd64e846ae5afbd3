#include "cli/pull_repository.h"

#include <filesystem>
#include <fstream>
#include <numeric>

#include "base/check.h"
#include "base/mapped_file.h"
#include "base/sha256.h"
#include "cli/http_file.h"
#include "cli/hub.h"
#include "cli/interrupt.h"
#include "cli/model_path.h"
#include "cli/output.h"

namespace limpid::cli {
namespace {

namespace fs = std::filesystem;

std::string sha256_of(const fs::path& path) {
  Sha256 digest;
  digest.update(MappedFile::open(path)->bytes());
  return digest.hex();
}

uint64_t size_of(const fs::path& path) {
  std::error_code absent;
  const uint64_t size = fs::file_size(path, absent);
  return absent ? 0 : size;
}

// What came of a file, in one line beside it: size and SHA-256. A file that has one was verified.
fs::path mark_of(const fs::path& target) { return target.string() + ".verified"; }

std::string mark_text(const HubFile& file) {
  return fmt::format("{} {}\n", file.n_bytes, file.sha256.empty() ? "-" : file.sha256);
}

bool is_here(const HubFile& file, const fs::path& target) {
  if (size_of(target) != file.n_bytes || !fs::exists(target)) return false;
  std::ifstream mark(mark_of(target));
  const std::string found((std::istreambuf_iterator<char>(mark)), {});
  // A small file without a checksum is fetched again: it may have changed without its size.
  return !file.sha256.empty() && found == mark_text(file);
}

class Puller {
 public:
  Puller(const RepositoryPull& pull, const Hub& hub, const Hub::Listing& listing, fs::path folder)
      : pull_(pull), hub_(hub), listing_(listing), folder_(std::move(folder)) {}

  // False when Ctrl-C ended it.
  bool run(const std::vector<HubFile>& files) {
    total_ = std::accumulate(files.begin(), files.end(), uint64_t{0},
                             [](uint64_t sum, const HubFile& file) { return sum + file.n_bytes; });
    for (const HubFile& file : files) {
      if (!is_here(file, folder_ / file.name) && !fetch(file)) return false;
      done_ += file.n_bytes;
    }
    bar_.wipe();
    return true;
  }

  uint64_t n_fetched() const { return n_fetched_; }

 private:
  bool fetch(const HubFile& file) {
    const fs::path target = folder_ / file.name;
    const fs::path part = target.string() + ".part";
    const uint64_t kept = size_of(part);
    if (kept > 0 && file.sha256.empty()) fs::remove(part);
    const HttpRequest request{hub_.url_of(pull_.repository, listing_.revision, file.name),
                              hub_.token()};
    const bool complete = http_fetch(request, part, file.n_bytes, [&](uint64_t n) {
      bar_.show(
          done_ + n, total_,
          fmt::format("{}: {} of {}", file.name, format_bytes(done_ + n), format_bytes(total_)));
      return !interrupt_.interrupted();
    });
    if (!complete) return false;
    verify(file, part);
    fs::rename(part, target);
    std::ofstream(mark_of(target)) << mark_text(file);
    n_fetched_ += file.n_bytes;
    return true;
  }

  static void verify(const HubFile& file, const fs::path& part) {
    if (file.sha256.empty()) return;
    const std::string found = sha256_of(part);
    if (found == file.sha256) return;
    fs::remove(part);
    throw ResourceError(fmt::format(
        "{} arrived damaged: sha256 {}, expected {}; it was deleted, run the same again", file.name,
        found, file.sha256));
  }

  const RepositoryPull& pull_;
  const Hub& hub_;
  const Hub::Listing& listing_;
  fs::path folder_;
  InterruptGuard interrupt_;
  ProgressBar bar_{"downloading"};
  uint64_t total_ = 0;
  uint64_t done_ = 0;
  uint64_t n_fetched_ = 0;
};

}  // namespace

std::string repository_folder(const std::string& repository) {
  return models_directory() + "/" + repository;
}

std::string pull_repository(const RepositoryPull& pull) {
  const Hub hub(pull.endpoint);
  const Hub::Listing listing = hub.list(pull.repository, pull.revision);
  const std::vector<HubFile> files = choose_files(pull.repository, listing, pull.file);
  const fs::path folder = pull.folder.empty() ? repository_folder(pull.repository) : pull.folder;
  fs::create_directories(folder);
  Puller puller(pull, hub, listing, folder);
  if (!puller.run(files)) return {};
  print_log(fmt::format("{} at {}: {} files, {} fetched", pull.repository, listing.revision,
                        files.size(), format_bytes(puller.n_fetched())));
  return files.size() == 1 ? (folder / files.front().name).string() : folder.string();
}

}  // namespace limpid::cli
