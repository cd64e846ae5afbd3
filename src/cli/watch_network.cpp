// While somebody looks, a network takes 20 steps a second, which a person can follow; alone it
// would take thousands. The page can pause it, let it take single steps, and change its speed and
// learning rate. Each of these is a command to LiveRun, which the training asks between the loss of
// a step and its update.
//
// --film keeps snapshots instead of serving them, in one HTML file that plays without the program.
#include "cli/watch_network.h"

#include <fmt/format.h>

#include <thread>

#include "base/check.h"
#include "cli/output.h"
#include "cli/output_path.h"
#include "train/microgpt/engine.h"

namespace limpid::cli {

// Slow enough to see single steps.
constexpr double kStepsPerSecond = 20;

void declare_watch(CLI::App& app, WatchFlags& values) {
  group(app, "watching");
  add_switch(app, "--watch", values.watches,
             "show the network on a local page while it learns; begins when the page is open");
  add_option(app, "--watch-task TASK", values.task,
             "a perceptron learns circle, xor or spiral instead: the first lesson");
  add_option(app, "--film FILE", values.film, "the same page to replay without a server (HTML)");
  add_option(app, "--port N", values.port, Range{0, 65535},
             "port of the page; 0: any that is free (0)");
}

void check_watch(const WatchFlags& values) {
  LIMPID_CHECK(ArgumentError, values.port == 0 || values.serves(),
               "--port is for the page of --watch; give --watch too");
}

NetworkWatch::NetworkWatch(const WatchFlags& flags, ShownNetwork shown,
                           const microgpt::Config& config)
    : flags_(flags),
      shown_(std::move(shown)),
      config_(config),
      run_({.steps_per_second = kStepsPerSecond, .learning_rate = config.learning_rate}) {
  if (!flags.film.empty()) {
    LIMPID_CHECK(ArgumentError, flags.film != "-",
                 "--film: standard output has the losses and names; name a file");
    check_writable(flags.film);
    film_.emplace(config.num_steps);
  }
  if (!flags.serves()) return;
  server_ = std::make_unique<WatchServer>(
      run_, [page = live_network_page(shown_.network)] { return page; }, flags.port,
      /*takes_commands=*/true);
  print_log(fmt::format("open {} to watch; it begins when the page is open", server_->address()));
}

void NetworkWatch::wait_for_page(const std::function<bool()>& cancelled) {
  while (server_ && !run_.was_asked() && !cancelled())
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
}

std::string NetworkWatch::snapshot(double loss, bool with_curve) const {
  Json json = shown_.snapshot();
  json["loss"] = loss;  // null where it is not finite
  microgpt::Config now = config_;
  now.learning_rate = run_.control().learning_rate;
  json["learning_rate_now"] = microgpt::learning_rate_at(now, json["step"]);
  if (with_curve) json["curve"] = curve_json(curve_);
  return json.dump();
}

void NetworkWatch::step(int64_t step, double loss, const std::function<bool()>& cancelled) {
  curve_.add(loss);
  if (film_ && film_->wants(step)) film_->add(snapshot(loss, false));
  if (run_.step([&] { return snapshot(loss, true); }, cancelled))
    shown_.set_learning_rate(run_.control().learning_rate);
}

void NetworkWatch::finish(double loss) {
  if (film_) {
    film_->end(snapshot(loss, false));
    write_text(flags_.film, film_->page(shown_.network, curve_));
  }
  if (!server_) return;
  run_.finish([&] { return snapshot(loss, true); });
  server_->stop();
}

}  // namespace limpid::cli
