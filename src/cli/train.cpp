// `limpid train`: a model learns from text.
//
// With `mpirun -n 4 limpid train …` four processes, the ranks, take every step together, each with
// a quarter of the batch, and add up their gradients. All run this file; rank 0 alone makes the
// folder, writes checkpoints and prints. The others get the folder's name from it and follow.
//
// Settings are declared from RunSettings itself (RunSettings::for_each), which also reads and
// writes run.json. A new setting is therefore an option, a line of help and a member of the
// file at once.
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/cache_folder.h"
#include "cli/command.h"
#include "cli/machine.h"
#include "cli/model_path.h"
#include "cli/signals.h"
#include "cli/training_display.h"
#include "cli/watch_server.h"
#include "model/configuration.h"
#include "train/mpi_ranks.h"
#include "train/run_report.h"
#include "train/training_run.h"

namespace limpid::cli {
namespace {

namespace fs = std::filesystem;

struct TrainFlags {
  std::string preset;
  std::string out;
  std::string resume;
  int64_t n_threads = 0;
  bool plan = false;
  bool json = false;
  bool watches = false;
  int64_t port = 0;
  // Settings by name, as they stand on the command line.
  std::vector<std::pair<std::string, std::string>> settings;
};

// Sets the member of that name; data files are added to the list. Returns the problem with `text`,
// or "".
std::string set(RunSettings& settings, std::string_view name, const std::string& text) {
  std::string problem;
  RunSettings::for_each(settings, [&](std::string_view member_name, auto& member, auto&&...) {
    if (member_name == name) problem = read_value(text, Range{}, member);
  });
  return problem;
}

void declare(CLI::App& app, TrainFlags& values) {
  add_option(app, "--preset NAME", values.preset,
             fmt::format("settings to begin with: {}", kRunPreset));
  add_option(app, "--out DIR", values.out, "the run's folder (runs/NAME)");
  add_option(
      app, "--resume DIR", values.resume,
      "go on with the run in this folder; --steps, --lr and others may change, and files may "
      "have moved");
  add_option(app, "-t,--threads N", values.n_threads, Range{0, 1024}, "0: as many as cores (0)");
  add_switch(app, "--plan", values.plan,
             "show memory, steps and time of the run, and do not train");
  add_switch(app, "--json", values.json, "the lines of log.jsonl, or the plan, for machines");
  CLI::Option* watch = add_switch(app, "--watch", values.watches,
                                  "show the run's report on a local page, as it grows");
  needs(add_option(app, "--port N", values.port, Range{0, 65535},
                   "port of the page of --watch; 0: any that is free (0)"),
        watch);
  group(app, "settings");
  RunSettings scratch;
  RunSettings::for_each(scratch, [&](const std::string& name, auto&, const char* placeholder,
                                     const char* help, auto...) {
    const auto read = [&values, name](const std::string& text) {
      RunSettings tried;
      values.settings.emplace_back(name, text);
      return set(tried, name, text);
    };
    const char* names = name == "model" ? "-m,--" : "--";
    add_list(app, fmt::format("{}{} {}", names, name, placeholder), read, help);
  });
}

// Returns a path that a run resumed from another folder finds too. What is not a file is a name or
// a number.
std::string absolute_path(const std::string& path) {
  std::error_code ignored;
  if (is_made_tokenizer(path) || !fs::exists(path, ignored)) return path;
  return fs::absolute(path).lexically_normal().string();
}

bool is_given(const TrainFlags& values, std::string_view name) {
  return std::ranges::any_of(values.settings, [&](const auto& each) { return each.first == name; });
}

// Replaces what the command line sets: all files of data, if it names any.
void set_given(RunSettings& settings, const TrainFlags& values) {
  constexpr std::array<std::string_view, 4> kPaths = {"config", "tokenizer", "data", "val"};
  if (is_given(values, "data")) settings.data.clear();
  for (const auto& [name, text] : values.settings) {
    const bool is_path = std::ranges::find(kPaths, name) != kPaths.end() &&
                         !(name == "config" && is_configuration_name(text));
    set(settings, name, is_path ? absolute_path(text) : text);
  }
}

RunSettings settings_of(const TrainFlags& values) {
  RunSettings settings = values.preset.empty() ? RunSettings() : run_preset(values.preset);
  set_given(settings, values);
  LIMPID_CHECK(ArgumentError, !settings.model.empty() || !settings.config.empty(),
               "what to train? give -m MODEL (goes on learning), --config NAME (a new model) or "
               "--preset shakespeare-char");
  LIMPID_CHECK(ArgumentError, settings.model.empty() || settings.config.empty(),
               "-m and --config: give one of them{}",
               values.preset.empty()
                   ? "; limpid convert makes a model of a bare state dictionary and its --config"
                   : " (the preset has a --config)");
  LIMPID_CHECK(ArgumentError, !settings.data.empty(), "what to learn from? give --data FILE");
  if (!settings.model.empty()) settings.model = absolute_path(resolve_model(settings.model));
  if (!settings.config.empty()) check_configuration(settings.config);
  return settings;
}

// runs/NAME, or runs/NAME-2 and so on where that is taken. NAME is that of the preset, or of the
// model or the configuration as it was given: of a run and not of its checkpoint.
std::string free_folder(const TrainFlags& values) {
  std::string source = values.preset;
  for (const auto& [name, text] : values.settings)
    if (values.preset.empty() && (name == "model" || name == "config")) source = text;
  const fs::path base = fs::path("runs") / model_name(source);
  fs::path folder = base;
  for (int i = 2; fs::exists(folder); ++i) folder = fmt::format("{}-{}", base.string(), i);
  return folder.string();
}

RunSettings resumed_settings(const TrainFlags& values, RunSettings settings) {
  const auto changeable = changeable_settings();
  for (const auto& [name, ignored] : values.settings) {
    LIMPID_CHECK(ArgumentError, std::ranges::find(changeable, name) != changeable.end(),
                 "--resume keeps --{} of the run; it may change --{}", name,
                 fmt::join(changeable, ", --"));
  }
  LIMPID_CHECK(ArgumentError, !is_given(values, "model") || !settings.model.empty(),
               "--resume: the run began with --config {} and has no -m; leave -m out",
               settings.config);
  const std::string tokenizer = settings.tokenizer;
  set_given(settings, values);
  const auto is_file = [](auto& name) { return !name.empty() && !is_made_tokenizer(name); };
  const bool moved = is_file(tokenizer) && is_file(settings.tokenizer);
  LIMPID_CHECK(ArgumentError, moved || settings.tokenizer == tokenizer,
               "--resume: --tokenizer is for a file that has moved; leave it out");
  if (is_given(values, "model")) settings.model = absolute_path(resolve_model(settings.model));
  settings.check();
  return settings;
}

RunFolder open_folder(const TrainFlags& values, int n_ranks) {
  if (!values.resume.empty()) {
    LIMPID_CHECK(ArgumentError, values.preset.empty() && values.out.empty(),
                 "--resume goes on in the run's folder; leave --preset and --out out");
    RunFolder folder = RunFolder::open(values.resume);
    folder.set_settings(resumed_settings(values, folder.settings()));
    return folder;
  }
  RunSettings settings = settings_of(values);
  settings.check();
  LIMPID_CHECK(ArgumentError, settings.grad_accum <= std::numeric_limits<int64_t>::max() / n_ranks,
               "--grad-accum {} is too large for {} processes", settings.grad_accum, n_ranks);
  settings.grad_accum *= n_ranks;  // a run resumes with the same steps on any number of ranks
  return RunFolder::create(values.out.empty() ? free_folder(values) : values.out, settings);
}

// With such settings the run would only warm up, at rates that nobody asked for.
void warn_of_long_warmup(const RunSettings& settings) {
  if (settings.steps == 0 || settings.warmup <= settings.steps) return;
  const Schedule schedule{.largest = settings.lr, .n_warmup = settings.warmup};
  print_log(fmt::format(
      "warning: --warmup {} exceeds --steps {}: the learning rate ends at {:.2g} and never reaches "
      "--lr {:g}; give a shorter warm-up",
      settings.warmup, settings.steps, schedule.at(settings.steps - 1), settings.lr));
}

// A sample below the line of its step, indented.
void write_sample(const TrainingSample& sample) {
  std::istringstream lines(sample.prompt + sample.text);
  for (std::string line; std::getline(lines, line);) write_out("  " + line + "\n");
}

// Whether the environment says that text is UTF-8.
bool terminal_is_utf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const std::string locale = environment(name);
    if (!locale.empty()) return locale.find("UTF-8") != locale.npos || locale.ends_with("utf8");
  }
  return false;
}

// Tokenized data are kept in the cache, where there is one: a text of gigabytes is tokenized once.
std::string token_cache() {
  try {
    return cache_folder("tokens");
  } catch (const ResourceError&) {
    return {};
  }
}

// Makes the plan in a temporary folder, or in the folder of the run that is resumed.
int print_plan(const TrainFlags& values, const RunOptions& options, double f32_limit,
               ProgressBar& tokenizing) {
  TrainFlags elsewhere = values;
  if (values.resume.empty()) {
    elsewhere.out =
        (fs::temp_directory_path() / fmt::format("limpid-plan-{}", ::getpid())).string();
  }
  const RunFolder folder = open_folder(elsewhere, options.ranks->size());
  const TrainingPlan plan = plan_run(folder, options);
  tokenizing.wipe();
  warn_of_long_warmup(folder.settings());
  values.json ? write_json(plan_json(plan, f32_limit), 2) : write_out(plan_text(plan, f32_limit));
  flush_out();
  options.ranks->finish();
  check_training_plan(plan);
  return kExitOk;
}

// Shows the steps of a training as they are done, in the terminal and on the page of --watch.
class Display {
 public:
  Display(TrainingRun& training, double f32_limit, const TrainFlags& values)
      : training_(training),
        f32_limit_(f32_limit),
        json_(values.json),
        first_step_(training.trainer().n_updates()) {
    if (!values.watches) return;
    const std::string folder = training.folder().path();
    server_.emplace(
        live_, [folder] { return run_report(folder, true); }, values.port, false);
    print_log(fmt::format("open {} to watch", server_->address()));
  }

  void show(const RunReport& report) {
    if (report.val_loss) val_loss_ = *report.val_loss;
    const TrainingPace pace = pace_of(report);
    if (json_) {
      write_out(to_json_line(report) + "\n");
      flush_out();
    } else if (report.val_loss || report.sample || training_.finished()) {
      bar_.wipe();
      write_out(step_line(report, pace) + "\n");
      if (report.sample) write_sample(*report.sample);
      flush_out();
    }
    newest_ = report;
    live_.step([this] { return to_json_line(newest_); }, [] { return false; });
    constexpr size_t kBarAndPercent = 24;
    const size_t columns = terminal_columns(STDERR_FILENO);
    bar_.show(report.step.step, pace.n_steps,
              step_note(report, pace, val_loss_, columns - std::min(columns, kBarAndPercent)));
  }

  // Removes the bar and shows the page the last step. On a terminal, shows the curve of the whole
  // run.
  void finish() {
    bar_.wipe();
    if (server_) {
      live_.finish([this] { return to_json_line(newest_); });
      server_->stop();
    }
    if (json_ || !stdout_is_terminal()) return;
    write_out(loss_curve(read_log(training_.folder().path()), terminal_columns(STDOUT_FILENO),
                         terminal_is_utf8()));
    flush_out();
  }

 private:
  // The first step is slower than those that follow, so it does not count.
  TrainingPace pace_of(const RunReport& report) {
    const TrainingPlan& plan = training_.plan();
    TrainingPace pace{plan.n_steps, 0, 0};
    const double steps_per_second =
        report.tokens_per_second / static_cast<double>(plan.tokens_per_step);
    pace.share_of_limit = plan.operations_per_step * steps_per_second / f32_limit_;
    const int64_t done = report.step.step - first_step_;
    if (done == 0) {
      since_first_ = {};
    } else {
      pace.seconds_left = since_first_.seconds() / static_cast<double>(done) *
                          static_cast<double>(plan.n_steps - report.step.step);
    }
    return pace;
  }

  TrainingRun& training_;
  double f32_limit_;
  bool json_;
  int64_t first_step_;
  double val_loss_ = -1;
  Stopwatch since_first_;
  ProgressBar bar_{"training"};
  RunReport newest_;
  LiveRun live_;
  std::optional<WatchServer> server_;  // last: its threads use the others
};

// Every rank takes the same steps; rank 0 alone writes, reports, and says whether all was done: if
// another rank ended with an error, mpirun would end rank 0 too.
int follow(const TrainFlags& values, const RunOptions& options) {
  if (!values.plan) {
    TrainingRun training(RunFolder::follow(options.ranks->broadcast("")), options);
    const InterruptGuard interrupt({}, OnSigterm::kInterrupt);
    try {
      while (!training.finished() && !training.stops(interrupt.interrupted())) training.step();
      training.save();
    } catch (const DivergedError&) {  // on all ranks; rank 0 says so
    }
  }
  options.ranks->finish();
  return kExitOk;
}

// A run that is stopped before its first step leaves nothing, like one that fails.
void check_not_stopped(const InterruptGuard& interrupt) {
  LIMPID_CHECK(Interrupted, !interrupt.interrupted(),
               "stopped before the first step; nothing was saved");
}

int run(const TrainFlags& values) {
  RunOptions options;
  if (n_launched_processes() > 1) options.ranks = make_mpi_ranks();
  options.n_threads =
      values.n_threads > 0 ? static_cast<int>(values.n_threads) : options.ranks->n_threads();
  options.cache_folder = token_cache();
  if (options.ranks->rank() > 0) return follow(values, options);
  const double f32_limit =  // of all ranks together
      measure_f32_limit(options.n_threads) * options.ranks->size();
  const InterruptGuard interrupt({}, OnSigterm::kInterrupt);
  ProgressBar tokenizing("tokenizing");
  options.progress = [&interrupt, show = tokenizing.of_bytes()](uint64_t done, uint64_t total) {
    check_not_stopped(interrupt);
    return show(done, total);
  };
  if (values.plan) return print_plan(values, options, f32_limit, tokenizing);
  RunFolder folder = open_folder(values, options.ranks->size());
  const std::string path = folder.path();
  TrainingRun training(std::move(folder), options);
  tokenizing.wipe();
  check_not_stopped(interrupt);
  warn_of_long_warmup(training.folder().settings());
  options.ranks->broadcast(path);
  if (!values.json) {
    write_out(plan_text(training.plan(), f32_limit));
    flush_out();
  }
  const int64_t first = training.trainer().n_updates();
  if (first > 0) print_log(fmt::format("going on from step {}", first));
  Display display(training, f32_limit, values);
  while (!training.finished() && !training.stops(interrupt.interrupted()))
    display.show(training.step());
  training.save();
  display.finish();
  options.ranks->finish();
  const auto saved = training.folder().newest();
  const RunSettings& settings = training.folder().settings();
  const Checkpoint& trained = training.trainer().model().checkpoint();
  const bool chats = trained.metadata.string("tokenizer.chat_template").has_value();
  print_log(
      fmt::format("saved {}; try it: limpid {} -m {}", saved->path, chats ? "chat" : "run",
                  settings.lora > 0 ? fmt::format("{} --lora {}", settings.model, path) : path));
  if (training.finished()) return kExitOk;
  print_log(fmt::format("stopped; go on with: limpid train --resume {}", path));
  return kExitInterrupted;
}

}  // namespace

Command train_command() {
  return {"a model that learns from text", "train [options]",
          "Trains a new model, or goes on with one, on text files. The run's folder holds its "
          "settings, log.jsonl, and checkpoints: folders that `limpid run` and `transformers` "
          "open.\nCtrl-C finishes the step, saves and ends; --resume goes on from there.",
          "limpid train --preset shakespeare-char\n"
          "limpid train --config config.json --tokenizer tokenizer.json --data wiki.test.raw --out "
          "runs/a\n"
          "limpid train -m smollm2 --lora 8 --data wiki.test.raw --out runs/b\n"
          "limpid train --preset shakespeare-char --plan\n"
          "limpid train --preset shakespeare-char --watch --sample-every 100\n"
          "limpid train --resume runs/a",
          bind<TrainFlags, declare, run>};
}

}  // namespace limpid::cli
