// Which models `limpid serve` offers, and what is known of them before they are loaded.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "cli/options.h"
#include "server/model_shelf.h"

namespace limpid::cli {

struct OfferFlags {
  std::vector<std::string>
      models;            // of -m: files, folders, names; a folder may hold several models
  std::string folder;    // one more such folder
  std::string aliases;   // names between commas, in the order of the models; of one model all
  std::string tags;      // words between commas
  int64_t n_most = 4;    // loaded at a time; 0: all
  double memory_gb = 0;  // for the loaded ones; 0: what is free on their device at the start
  bool autoload = true;
};

void declare_offer(CLI::App& app, OfferFlags& values);

// A model's name for clients, and the flags that open it: those for all, with its own path.
struct OfferedModel {
  std::string name;
  std::vector<std::string> aliases, tags;
  ModelFlags flags;
};

// At least one. The name is an alias, or that of the file without its ending, or of the folder. A
// single model may have several aliases: its name is the first of them in the alphabet, as in
// llama-server.
// Throws ArgumentError for what is not there, a folder without models, and aliases that do not fit
// the number of models.
std::vector<OfferedModel> offered_models(const OfferFlags& offer, const ModelFlags& flags);

// Reads the header of the model's files. Throws as Engine::open.
ModelCard read_card(const OfferedModel& offered);

// Of a shelf with these models, of which there is at least one.
ShelfLimits shelf_limits(const OfferFlags& offer, std::span<const ShelvedModel> models,
                         int64_t n_queued, int64_t sleep_idle_seconds);

}  // namespace limpid::cli
