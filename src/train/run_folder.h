// The folder of a run: run.json (its settings), files of what was measured (log.jsonl and others),
// and checkpoints step-000100/, each a Hugging Face folder, or an adapter in PEFT's layout, with
// training_state.safetensors beside it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/folder_lock.h"
#include "train/run_settings.h"
#include "train/trainer.h"

namespace limpid {

// The file with the state of training in a checkpoint, beside the weights.
inline constexpr const char* kStateFile = "training_state.safetensors";

// Files of measurements: JSON objects, one per line, each with the number of a step.
inline constexpr const char* kLogFile = "log.jsonl";
inline constexpr const char* kSamplesFile = "samples.jsonl";
inline constexpr const char* kHistogramsFile = "histograms.jsonl";

// Returns the settings of the run in a folder. Throws FormatError, ResourceError.
RunSettings read_settings(const std::string& folder);

// Returns the newest checkpoint in the folder of a run; "" if `path` is not the folder of a run.
// Throws ArgumentError when the run has no checkpoint yet.
std::string newest_checkpoint(const std::string& path);

// Only one process works in a folder at a time. At any moment, also after a crash, the folder holds
// only complete checkpoints.
class RunFolder {
 public:
  // Creates the folder of a new run. If the run ends before its first step, the files that it made
  // there are removed again; other files in the folder stay. Throws ArgumentError when the folder
  // holds a run, checkpoints of one, or a tokenizer where the run would write one, ResourceError.
  static RunFolder create(const std::string& path, const RunSettings& settings);
  // Opens the folder of a run that goes on. Throws ArgumentError when `path` is not such a folder
  // or another process works in it, FormatError.
  static RunFolder open(const std::string& path);
  // Reads the folder in which rank 0 works, without changing it.
  static RunFolder follow(const std::string& path);
  RunFolder(RunFolder&& other) noexcept = default;
  RunFolder& operator=(RunFolder&&) = delete;
  ~RunFolder();

  const std::string& path() const { return path_; }
  const RunSettings& settings() const { return settings_; }
  // Replaces the settings. begin() writes them to run.json.
  void set_settings(RunSettings settings) { settings_ = std::move(settings); }
  // A checkpoint.
  struct SavedStep {
    std::string path;    // its folder
    int64_t n_updates;   // after which it was saved
    std::string before;  // the folder of the checkpoint before it; "" for the first one
  };
  // Returns the newest checkpoint; nothing before the first one.
  std::optional<SavedStep> newest() const;

  // Writes a checkpoint under a temporary name, syncs and renames it, and removes the oldest ones
  // beyond settings().keep. Throws ResourceError, and then leaves nothing of the new checkpoint.
  void save(Trainer& trainer);
  // Appends an object to a file of measurements. Throws ResourceError.
  void append(const char* name, std::string_view json_line);
  // Call when the run begins, or goes on, after `n_updates` updates. Writes the settings, and drops
  // the lines of that step and later ones from every file of measurements, because they will be
  // written again.
  void begin(int64_t n_updates);

 private:
  RunFolder(std::string path, RunSettings settings, FolderLock lock);
  void write_checkpoint(const std::filesystem::path& folder, Trainer& trainer) const;
  void remove_old_checkpoints() const;  // beyond settings().keep

  std::string path_;
  RunSettings settings_;
  FolderLock lock_;
  // Files of a new run that were not there before it. Empty once anything was measured or saved.
  std::vector<std::string> made_;
};

}  // namespace limpid
