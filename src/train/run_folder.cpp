#include "train/run_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/atomic_file.h"
#include "base/check.h"
#include "base/mapped_file.h"
#include "base/parse_number.h"
#include "base/paths.h"
#include "export/export_model.h"
#include "export/lora_export.h"

namespace limpid {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSettings = "run.json";
constexpr std::array kFirstFiles = {kSettings, "tokenizer.json", "tokenizer_config.json"};
constexpr std::string_view kStepPrefix = "step-";
constexpr std::string_view kUnfinished = ".unfinished-";

std::string read_file(const fs::path& path) {
  return std::string(text_of(*MappedFile::open(path.string())));
}

// Makes the entries of a folder durable: a rename is on the disk only then.
void sync_folder(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  ::fsync(descriptor);
  ::close(descriptor);
}

// Returns the folders of the checkpoints by number of updates.
std::map<int64_t, std::string> saved_steps(const std::string& path) {
  std::map<int64_t, std::string> steps;
  for (const auto& entry : fs::directory_iterator(path)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(kStepPrefix)) continue;
    const auto n = parse_number<int64_t>(std::string_view(name).substr(kStepPrefix.size()));
    if (n && *n >= 0) steps[*n] = entry.path().string();
  }
  return steps;
}

void check_is_run(const std::string& path) {
  LIMPID_CHECK(ArgumentError, fs::exists(fs::path(path) / kSettings),
               "{} is not the folder of a run: it has no {}", path, kSettings);
}

// Returns whether a line of measurements is of a step before the `n_updates`th. A line that a crash
// cut short is not JSON.
bool is_before(std::string_view line, int64_t n_updates) {
  const auto json = nlohmann::json::parse(line, nullptr, false);
  if (!json.is_object()) return false;
  const auto step = json.find("step");
  return step != json.end() && step->is_number() &&
         step->get<double>() < static_cast<double>(n_updates);
}

// Removes the remains of a process that was killed: a checkpoint that was being written or removed.
// Other files in the folder are the user's, or AtomicFile removes them.
void remove_unfinished(const std::string& path) {
  for (const auto& entry : fs::directory_iterator(path)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(kUnfinished)) fs::remove_all(entry.path());
  }
}

// Renames the checkpoint to the name of an unfinished one first, so that a crash leaves no half of
// it under the name of a checkpoint.
void remove_checkpoint(const fs::path& path) {
  if (!fs::exists(path)) return;
  const fs::path renamed =
      path.parent_path() / (std::string(kUnfinished) + "old-" + path.filename().string());
  fs::rename(path, renamed);
  fs::remove_all(renamed);
}

}  // namespace

RunFolder::RunFolder(std::string path, RunSettings settings, FolderLock lock)
    : path_(std::move(path)), settings_(std::move(settings)), lock_(std::move(lock)) {}

RunFolder::~RunFolder() {
  if (made_.empty()) return;
  std::error_code absent;
  for (const std::string& name : made_) fs::remove(fs::path(path_) / name, absent);
  fs::remove(path_, absent);  // if it is empty
}

RunFolder RunFolder::create(const std::string& path, const RunSettings& settings) {
  LIMPID_CHECK(ArgumentError, !fs::exists(fs::path(path) / kSettings),
               "{} holds a run already; resume it, or name another folder", path);
  for (const char* name : {"tokenizer.json", "tokenizer_config.json"}) {
    LIMPID_CHECK(ArgumentError,
                 !is_made_tokenizer(settings.tokenizer) || !fs::exists(fs::path(path) / name),
                 "{} already has a {}, and `{}` would write another one; name another folder, or "
                 "remove the file",
                 path, name, settings.tokenizer);
  }
  make_folder(path);
  RunFolder folder(path, settings, FolderLock(path));
  // Their steps would be taken for those of the new run.
  LIMPID_CHECK(ArgumentError, saved_steps(path).empty(),
               "{} holds checkpoints but no {}; name another folder, or move its {}* folders away",
               path, kSettings, kStepPrefix);
  for (const char* name : kFirstFiles) {
    if (!fs::exists(fs::path(path) / name)) folder.made_.emplace_back(name);
  }
  remove_unfinished(path);
  write_file(fs::path(path) / kSettings, settings.to_json());
  return folder;
}

RunFolder RunFolder::open(const std::string& path) {
  check_is_run(path);
  RunFolder folder(path, {}, FolderLock(path));
  folder.settings_ = read_settings(path);
  remove_unfinished(path);
  folder.remove_old_checkpoints();  // a run that was killed may not have come to it
  return folder;
}

RunFolder RunFolder::follow(const std::string& path) {
  check_is_run(path);
  return {path, read_settings(path), FolderLock()};
}

RunSettings read_settings(const std::string& folder) {
  const fs::path file = fs::path(folder) / kSettings;
  return RunSettings::from_json(read_file(file), file.string());
}

std::string newest_checkpoint(const std::string& path) {
  if (!is_there(fs::path(path) / kSettings)) return {};
  const auto steps = saved_steps(path);
  if (!steps.empty()) return steps.rbegin()->second;
  RunSettings settings;
  try {
    settings = read_settings(path);
  } catch (const FormatError&) {
    if (is_there(fs::path(path) / kLogFile)) throw;
    return {};  // the run.json of another program
  }
  throw ArgumentError(
      fmt::format("the run in {} has no checkpoint yet; it saves one at step {}, or when it is "
                  "stopped (Ctrl-C)",
                  path, settings.save_every > 0 ? settings.save_every : settings.steps));
}

std::optional<RunFolder::SavedStep> RunFolder::newest() const {
  const auto steps = saved_steps(path_);
  if (steps.empty()) return std::nullopt;
  const auto newest = steps.rbegin();
  return SavedStep{newest->second, newest->first,
                   steps.size() == 1 ? "" : std::next(newest)->second};
}

// The order makes a crash harmless: everything is on the disk before the rename, the rename is one
// operation of the file system, and the old checkpoints go last.
void RunFolder::save(Trainer& trainer) {
  made_.clear();
  const std::string name = fmt::format("{}{:06}", kStepPrefix, trainer.n_updates());
  const fs::path unfinished = fs::path(path_) / (std::string(kUnfinished) + name);
  fs::remove_all(unfinished);
  try {
    write_checkpoint(unfinished, trainer);
  } catch (...) {
    std::error_code ignored;
    fs::remove_all(unfinished, ignored);  // a full disk needs the space
    throw;
  }
  const fs::path finished = fs::path(path_) / name;
  remove_checkpoint(finished);
  std::error_code error;
  fs::rename(unfinished, finished, error);
  LIMPID_CHECK(ResourceError, !error, "cannot rename {}: {}", unfinished.string(), error.message());
  sync_folder(path_);
  remove_old_checkpoints();
}

void RunFolder::remove_old_checkpoints() const {
  auto steps = saved_steps(path_);
  while (std::ssize(steps) > settings_.keep) {
    remove_checkpoint(steps.begin()->second);
    steps.erase(steps.begin());
  }
}

void RunFolder::write_checkpoint(const fs::path& folder, Trainer& trainer) const {
  if (settings_.lora > 0) {
    export_lora_adapter(folder.string(), trainer.model().checkpoint(), 0, settings_.model);
  } else {
    export_model(folder.string(), trainer.model().checkpoint(), {.layout = Layout::kHuggingFace});
  }
  trainer.save_state((folder / kStateFile).string());
  sync_folder(folder.string());
}

void RunFolder::append(const char* name, std::string_view json_line) {
  made_.clear();
  const std::string file = (fs::path(path_) / name).string();
  std::ofstream out(file, std::ios::binary | std::ios::app);
  out << json_line << '\n';
  out.flush();
  LIMPID_CHECK(ResourceError, out.good(), "cannot write {}: is the disk full?", file);
}

// A run that was killed at step 130 goes on from its checkpoint of step 100, and measures steps 100
// to 129 once more, with the same numbers. Without this, the files would have them twice.
void RunFolder::begin(int64_t n_updates) {
  write_file(fs::path(path_) / kSettings, settings_.to_json());
  for (const char* name : {kLogFile, kSamplesFile, kHistogramsFile}) {
    const fs::path file = fs::path(path_) / name;
    if (!fs::exists(file)) continue;
    std::istringstream lines(read_file(file));
    std::string kept;
    for (std::string line; std::getline(lines, line);) {
      if (is_before(line, n_updates)) kept += line + "\n";
    }
    write_file(file, kept);
  }
}

}  // namespace limpid
