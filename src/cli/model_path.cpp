// What -m may mean, with the cache at ~/.cache/limpid/models:
//   -m dir/model.gguf       that path
//   -m smollm2              SmolLM2-135M-Instruct.Q4_1.gguf in the cache, after `pull smollm2`
//   -m Qwen/Qwen3-0.6B      the folder Qwen/Qwen3-0.6B in the cache, after `pull Qwen/Qwen3-0.6B`
#include "cli/model_path.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "base/cache_folder.h"
#include "base/check.h"
#include "base/paths.h"
#include "checkpoint/gguf_part.h"
#include "cli/flags.h"
#include "cli/pull.h"
#include "model/configuration.h"
#include "train/run_folder.h"

namespace limpid::cli {

namespace fs = std::filesystem;

std::string model_name(const std::string& path) {
  fs::path full = fs::absolute(path).lexically_normal();
  if (!full.has_filename()) full = full.parent_path();  // "models/small/", "."
  if (!is_file(full)) return full.filename().string();
  const auto part = parse_gguf_part(full.filename().string());
  return part ? part->base : full.stem().string();
}

std::vector<std::string> short_names() {
  std::vector<std::string> names;
  for (const NamedModel& model : kNamedModels) names.emplace_back(model.name);
  return names;
}

const NamedModel* find_named_model(std::string_view name) {
  const auto* found = std::ranges::find(kNamedModels, name, &NamedModel::name);
  return found == std::end(kNamedModels) ? nullptr : found;
}

// Compares name and size. A digest would be certain, but the whole file would have to be read at
// each start of a chat.
const NamedModel* named_model_at(const std::string& path) {
  for (const NamedModel& model : kNamedModels) {
    const bool same_name = fs::path(path).filename() == model.file_name();
    if (same_name && size_of_file(path) == model.n_bytes) return &model;
  }
  return nullptr;
}

std::string models_directory() { return cache_folder("models"); }

namespace {

// The names of files have them, those of repositories do not.
constexpr std::string_view kFileEndings[] = {".gguf", ".bin",   ".safetensors", ".pt",
                                             ".json", ".model", ".tiktoken",    ".txt"};

// Where a pulled repository lies: its folder, or the only .gguf in it, of one in parts the first.
// "" when it was not pulled.
std::string find_pulled(const std::string& repository) {
  const fs::path folder = repository_folder(repository);
  if (is_there(folder / "config.json")) return folder;
  std::string found;
  for (const fs::path& path : entries_of(folder)) {
    if (!is_gguf_of_model(path.string())) continue;
    LIMPID_CHECK(ArgumentError, found.empty(), "{} holds several models: {} and {}; name the file",
                 folder.string(), found, path.filename().string());
    found = path;
  }
  return found;
}

// The short name or the file in the same folder whose spelling is nearest to `model`, or "".
std::string near(const std::string& model) {
  std::string name = nearest(model, short_names());
  if (!name.empty()) return name;
  std::vector<std::string> choices;
  // Compared without the ending, which would make all files of a kind look alike.
  const fs::path path(model);
  const fs::path folder = path.parent_path();
  for (const fs::path& entry : entries_of(folder.empty() ? "." : folder)) {
    if (entry.extension() == path.extension()) choices.push_back(entry.stem());
  }
  const std::string stem = nearest(path.stem().string(), choices);
  return stem.empty() ? "" : (folder / (stem + path.extension().string())).string();
}

}  // namespace

// In this order: a path that exists, a short name, a repository that was pulled. Otherwise an error
// with the nearest name.
std::string resolve_model(const std::string& model) {
  LIMPID_CHECK(ArgumentError, !model.empty(),
               "which model? give -m FILE, or `limpid pull smollm2` once and then -m smollm2");
  if (std::string trained = newest_checkpoint(model); !trained.empty()) return trained;
  if (is_there(model)) return model;
  if (const NamedModel* named = find_named_model(model)) {
    const fs::path path = fs::path(models_directory()) / named->file_name();
    LIMPID_CHECK(ArgumentError, is_there(path),
                 "{} is not on this machine yet; run: limpid pull {}", model, model);
    return path.string();
  }
  if (is_repository_name(model)) {
    std::string pulled = find_pulled(model);
    if (!pulled.empty()) return pulled;
    const auto is_in_name = [&](std::string_view part) { return model.find(part) != model.npos; };
    LIMPID_CHECK(ArgumentError, std::ranges::any_of(kFileEndings, is_in_name),
                 "no model at {}; if it is a repository of the hub, run: limpid pull {}", model,
                 model);
  }
  std::error_code ignored;
  LIMPID_CHECK(ArgumentError, !fs::is_symlink(model, ignored),
               "no model at {}: it is a link to {}, which does not exist", model,
               fs::read_symlink(model, ignored).string());
  const std::string suggestion = near(model);
  LIMPID_CHECK(ArgumentError, suggestion.empty(), "no model at {}; did you mean {}?", model,
               suggestion);
  throw ArgumentError(
      fmt::format("no model at {}: the file does not exist; check the path, or run `limpid pull "
                  "smollm2` and give -m smollm2",
                  shown_path(model)));
}

void check_configuration(const std::string& path_or_name) {
  if (is_configuration_name(path_or_name) || is_there(path_or_name)) return;
  const auto known = configuration_names();
  const std::vector<std::string> names(known.begin(), known.end());
  throw ArgumentError(
      fmt::format("--config {}: no such file, and no configuration of that name{} (there are {})",
                  path_or_name, did_you_mean(path_or_name, names), fmt::join(names, ", ")));
}

}  // namespace limpid::cli
