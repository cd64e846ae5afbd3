// In `limpid serve`, -m may also name a folder of models.
//
//   models/a.gguf                       model a
//   models/b-00001-of-00002.gguf        model b; its other parts are not models of their own
//   models/mmproj-a.gguf                not a model: an image projector of another program
//   models/Qwen3-0.6B/config.json       model Qwen3-0.6B
//   models/c/c-Q4_K_M.gguf              model c-Q4_K_M
#include "cli/serve_models.h"

#include <algorithm>
#include <filesystem>
#include <ranges>

#include "base/check.h"
#include "base/paths.h"
#include "base/text.h"
#include "checkpoint/gguf_part.h"
#include "checkpoint/hugging_face_folder.h"
#include "checkpoint/meta_folder.h"
#include "cli/model_path.h"
#include "cli/open_model.h"
#include "cli/output.h"
#include "generate/engine.h"
#include "generate/memory_plan.h"
#include "model/decoder_from_checkpoint.h"
#include "server/built_in_templates.h"

namespace limpid::cli {
namespace {

namespace fs = std::filesystem;

bool is_model_folder(const fs::path& path) {
  return is_folder(path) &&
         (looks_like_hugging_face(path.string()) || looks_like_meta(path.string()));
}

void find_files(const fs::path& folder, std::vector<std::string>& paths) {
  for (const fs::path& path : entries_of(folder)) {
    if (is_gguf_of_model(path.string()) && !is_folder(path)) paths.push_back(path.string());
  }
}

std::vector<std::string> models_in(const fs::path& folder) {
  LIMPID_CHECK(ArgumentError, is_folder(folder), "{} is not a folder", folder.string());
  std::vector<std::string> paths;
  find_files(folder, paths);
  for (const fs::path& path : entries_of(folder)) {
    if (is_model_folder(path)) {
      paths.push_back(path.string());
    } else if (is_folder(path)) {
      find_files(path, paths);
    }
  }
  LIMPID_CHECK(ArgumentError, !paths.empty(),
               "{} holds no models: neither .gguf files nor folders with a config.json",
               folder.string());
  return paths;
}

std::vector<std::string> model_paths(const OfferFlags& offer, const ModelFlags& flags) {
  std::vector<std::string> paths;
  for (const std::string& model : offer.models) {
    std::string path = model_path(flags.with_model(model));
    if (is_folder(path) && !is_model_folder(path)) {
      std::ranges::move(models_in(path), std::back_inserter(paths));
    } else {
      paths.push_back(std::move(path));
    }
  }
  if (!offer.folder.empty()) std::ranges::move(models_in(offer.folder), std::back_inserter(paths));
  if (!flags.repository.empty() || paths.empty()) paths.push_back(model_path(flags));
  return paths;
}

}  // namespace

void declare_offer(CLI::App& app, OfferFlags& values) {
  add_option(app, "-a,--alias NAME", values.aliases,
             "the model's name (its file's); of several models, their names between commas; of one "
             "model, several names: it is called by the first in the alphabet",
             "LLAMA_ARG_ALIAS");
  add_option(app, "--tags LIST", values.tags, "words that the list of models shows, between commas",
             "LLAMA_ARG_TAGS");
  add_option(app, "--models-dir FOLDER", values.folder,
             "offer all models in a folder, as -m FOLDER does", "LLAMA_ARG_MODELS_DIR");
  add_option(app, "--models-max N", values.n_most, Range{0, 1e6},
             "models that are loaded at a time; 0: all that fit (4)", "LLAMA_ARG_MODELS_MAX");
  add_option(
      app, "--models-memory GB", values.memory_gb, Range{0, 1e6},
      "memory for the loaded models together; 0: what is free on their device at the start (0)");
  add_switch(app, "--models-autoload,!--no-models-autoload", values.autoload,
             "a request loads the model that it names (on)", "LLAMA_ARG_MODELS_AUTOLOAD");
}

std::vector<OfferedModel> offered_models(const OfferFlags& offer, const ModelFlags& flags) {
  const std::vector<std::string> paths = model_paths(offer, flags);
  std::vector<std::string> names = split_list(offer.aliases);
  std::vector<std::string> tags = split_list(offer.tags);
  std::ranges::sort(tags);
  if (paths.size() == 1) std::ranges::sort(names);
  LIMPID_CHECK(ArgumentError, names.empty() || paths.size() == 1 || names.size() == paths.size(),
               "--alias has {}, and there are {} models", count(names.size(), "name"),
               paths.size());
  std::vector<OfferedModel> models;
  for (size_t i = 0; i < paths.size(); ++i) {
    models.push_back({names.empty() ? model_name(paths[i]) : names[i],
                      paths.size() == 1 ? names : std::vector<std::string>(), tags,
                      flags.with_model(paths[i])});
  }
  return models;
}

// For the weights, the larger of two numbers counts: the pages of the file, if the weights are used
// as they are, or the packed copies.
ModelCard read_card(const OfferedModel& offered) {
  const OpenOptions options = to_open_options(offered.flags);
  const std::shared_ptr<const Checkpoint> checkpoint =
      limpid::open_header(offered.flags.model, options);
  const DecoderSpec spec = read_spec(*checkpoint);
  const MemoryPlan plan = make_memory_plan(*checkpoint, spec, options);
  const std::string_view chat_template =
      checkpoint->metadata.string("tokenizer.chat_template").value_or("");
  return {.name = offered.name,
          .aliases = offered.aliases,
          .tags = offered.tags,
          .path = offered.flags.model,
          .format = checkpoint->format,
          .architecture = spec.architecture,
          .chat_template =
              std::string(chat_template.empty() ? built_in_template("chatml") : chat_template),
          .vocab_size = spec.vocab_size,
          .d_model = spec.d_model,
          .n_ctx_train = plan.n_ctx_train,
          .n_file_bytes = plan.weights_in_file,
          .n_bytes = std::max(plan.weights_in_file, plan.weights_packed) + plan.kv_cache +
                     plan.activations,
          .n_available = plan.available};
}

// Models that lie on a GPU share its memory; one that has layers on the CPU too has more.
ShelfLimits shelf_limits(const OfferFlags& offer, std::span<const ShelvedModel> models,
                         int64_t n_queued, int64_t sleep_idle_seconds) {
  LIMPID_CHECK(ArgumentError, sleep_idle_seconds != 0,
               "--sleep-idle-seconds 0: give 1 or more, or -1 for never");
  const auto n_available = [](const ShelvedModel& model) { return model.card.n_available; };
  return {.n_most = offer.n_most,
          .most_bytes = offer.memory_gb > 0
                            ? static_cast<uint64_t>(offer.memory_gb * 1e9)
                            : std::ranges::min(models | std::views::transform(n_available)),
          .n_waiting = n_queued,
          .idle_time = std::chrono::seconds(std::max<int64_t>(0, sleep_idle_seconds))};
}

}  // namespace limpid::cli
