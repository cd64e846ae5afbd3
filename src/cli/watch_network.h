// `limpid microgpt --watch`, `--watch-task` and `--film`: a network that learns, on a page.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "cli/flags.h"
#include "cli/watch_server.h"
#include "train/microgpt/config.h"
#include "train/watch/film.h"

namespace limpid::cli {

struct WatchFlags {
  bool watches = false;
  std::string task;
  std::string film;
  int64_t port = 0;

  // Whether a page is served: a task alone needs one, a film alone does not.
  bool serves() const { return watches || (!task.empty() && film.empty()); }
  bool any() const { return serves() || !film.empty(); }
};

void declare_watch(CLI::App& app, WatchFlags& values);
// Throws ArgumentError for a port of no page.
void check_watch(const WatchFlags& values);

// What is asked of a network.
struct ShownNetwork {
  Json network;                    // for the page
  std::function<Json()> snapshot;  // of the step under way, before its update
  std::function<void(double)> set_learning_rate;
};

// Shows a network on a page, and records the film.
class NetworkWatch {
 public:
  // Throws ArgumentError, ResourceError.
  NetworkWatch(const WatchFlags& flags, ShownNetwork shown, const microgpt::Config& config);

  // Returns when the page is open, or `cancelled` gives true.
  void wait_for_page(const std::function<bool()>& cancelled);
  // Between the loss of a step and its update. Waits while the run is paused.
  void step(int64_t step, double loss, const std::function<bool()>& cancelled);
  // After the last update, with the loss of the batch that would come next. Writes the film.
  void finish(double loss);

 private:
  std::string snapshot(double loss, bool with_curve) const;

  WatchFlags flags_;
  ShownNetwork shown_;
  microgpt::Config config_;
  LiveRun run_;
  LossCurve curve_;
  std::optional<Film> film_;
  std::unique_ptr<WatchServer> server_;  // last: its threads use the others
};

}  // namespace limpid::cli
