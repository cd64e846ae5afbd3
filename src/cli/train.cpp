// `limpid train`: a model learns from text.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <thread>

#include "base/cache_folder.h"
#include "base/usable_cores.h"
#include "cli/command.h"
#include "cli/model_path.h"
#include "cli/signals.h"
#include "train/mpi_ranks.h"
#include "train/training_run.h"

namespace limpid::cli {
namespace {

namespace fs = std::filesystem;

struct TrainFlags {
  std::string preset;
  std::string out;
  std::string resume;
  int64_t n_threads = 0;
  bool json = false;
  // Settings by name, as they stand on the command line.
  std::vector<std::pair<std::string, std::string>> settings;
};

// Sets the member of that name; data are added to. Gives the problem with `text`, or "".
std::string set(RunSettings& settings, std::string_view name, const std::string& text) {
  std::string problem;
  RunSettings::for_each(settings, [&](std::string_view member_name, auto& member, auto&&...) {
    if (member_name == name) problem = read_value(text, Range{}, member);
  });
  return problem;
}

void declare(CLI::App& app, TrainFlags& values) {
  add_option(app, "--preset NAME", values.preset,
             fmt::format("settings to begin with: {}", fmt::join(run_preset_names(), ", ")));
  add_option(app, "--out DIR", values.out, "the run's folder [runs/NAME]");
  add_option(app, "--resume DIR", values.resume, "go on with the run in this folder");
  add_option(app, "-t,--threads N", values.n_threads, Range{0, 1024}, "0: as many as cores [0]");
  add_switch(app, "--json", values.json, "the lines of log.jsonl, for machines");
  group(app, "settings");
  RunSettings scratch;
  RunSettings::for_each(
      scratch, [&](const std::string& name, auto&, const char* placeholder, const char* help) {
        const auto read = [&values, name](const std::string& text) {
          RunSettings tried;
          values.settings.emplace_back(name, text);
          return set(tried, name, text);
        };
        const char* names = name == "model" ? "-m,--" : "--";
        add_list(app, fmt::format("{}{} {}", names, name, placeholder), read, help);
      });
}

RunSettings settings_of(const TrainFlags& values) {
  RunSettings settings = values.preset.empty() ? RunSettings() : run_preset(values.preset);
  const auto is_data = [](const auto& setting) { return setting.first == "data"; };
  if (std::ranges::any_of(values.settings, is_data)) settings.data.clear();  // not the preset's
  for (const auto& [name, text] : values.settings) set(settings, name, text);
  if (!settings.model.empty()) settings.model = resolve_model(settings.model);
  return settings;
}

// runs/NAME, or runs/NAME-2 and so on where that is taken.
std::string free_folder(const RunSettings& settings, const std::string& preset) {
  const std::string source = !preset.empty()           ? preset
                             : !settings.model.empty() ? settings.model
                                                       : settings.config;
  const fs::path base = fs::path("runs") / fs::path(source).stem();
  fs::path folder = base;
  for (int i = 2; fs::exists(folder); ++i) folder = fmt::format("{}-{}", base.string(), i);
  return folder.string();
}

RunFolder open_folder(const TrainFlags& values, int n_ranks) {
  if (!values.resume.empty()) {
    LIMPID_CHECK(ArgumentError,
                 values.settings.empty() && values.preset.empty() && values.out.empty(),
                 "--resume goes on with the settings in the folder; leave the other settings out");
    return RunFolder::open(values.resume);
  }
  RunSettings settings = settings_of(values);
  settings.grad_accum *= n_ranks;  // a run resumes with the same steps on any number of ranks
  settings.check();
  return RunFolder::create(values.out.empty() ? free_folder(settings, values.preset) : values.out,
                           settings);
}

// Those of the command line; or else all cores, which the ranks on this machine share.
int n_threads(const TrainFlags& values, const Ranks& ranks) {
  if (values.n_threads > 0 || ranks.size() == 1) return static_cast<int>(values.n_threads);
  const int n_cores = static_cast<int>(std::thread::hardware_concurrency());
  return std::clamp(n_cores / ranks.n_on_this_machine(), 1, usable_cores());
}

// A line for the terminal: "step 250 of 2000, loss 2.31, val 2.35, lr 1.0e-03, 41,000 tokens/s".
std::string words_of(const RunReport& report, int64_t n_steps) {
  std::string line =
      fmt::format("step {} of {}, loss {:.4f}", report.step.step, n_steps, report.step.loss);
  if (report.val_loss) line += fmt::format(", val {:.4f}", *report.val_loss);
  return line +
         fmt::format(", lr {:.1e}, {:.0f} tokens/s", report.step.lr, report.tokens_per_second);
}

// A sample below the line of its step, indented.
void write_sample(const TrainingSample& sample) {
  std::istringstream lines(sample.prompt + sample.text);
  for (std::string line; std::getline(lines, line);) write_out("  " + line + "\n");
}

std::string time_left(double seconds) {
  const auto s = static_cast<int64_t>(seconds);
  return s >= 3600 ? fmt::format("{} h {:02} min left", s / 3600, s / 60 % 60)
         : s >= 60 ? fmt::format("{} min left", s / 60)
                   : fmt::format("{} s left", s);
}

// Tokenized data are kept in the cache, where there is one.
std::string token_cache() {
  try {
    return cache_folder("tokens");
  } catch (const ResourceError&) {
    return {};
  }
}

// Every rank takes the same steps; rank 0 alone writes, reports, and says whether all was done: if
// another rank ended with an error, mpirun would end rank 0 too.
int follow(const RunOptions& options) {
  TrainingRun training(RunFolder::follow(options.ranks->broadcast("")), options);
  InterruptGuard interrupt;
  interrupt.take_sigterm_too();
  while (!training.finished() && !training.stops(interrupt.interrupted())) training.step();
  options.ranks->finish();
  return kExitOk;
}

int run(const TrainFlags& values) {
  RunOptions options;
  if (n_launched_processes() > 1) options.ranks = make_mpi_ranks();
  options.n_threads = n_threads(values, *options.ranks);
  options.token_cache = token_cache();
  if (options.ranks->rank() > 0) return follow(options);
  RunFolder folder = open_folder(values, options.ranks->size());
  const std::string path = folder.path();
  ProgressBar tokenizing("tokenizing");
  options.progress = tokenizing.of_bytes();
  TrainingRun training(std::move(folder), options);
  tokenizing.wipe();
  options.ranks->broadcast(path);
  const int64_t n_steps = training.folder().settings().steps;
  const int64_t first = training.trainer().n_updates();
  if (first > 0) print_log(fmt::format("going on from step {}", first));
  InterruptGuard interrupt;
  interrupt.take_sigterm_too();
  ProgressBar bar("training");
  const Stopwatch watch;
  while (!training.finished() && !training.stops(interrupt.interrupted())) {
    const RunReport report = training.step();
    const int64_t done = report.step.step;
    if (values.json) {
      write_out(to_json_line(report) + "\n");
    } else if (report.val_loss || report.sample || training.finished()) {
      bar.wipe();
      write_out(words_of(report, n_steps) + "\n");
      if (report.sample) write_sample(*report.sample);
      flush_out();
    }
    const double per_step = watch.seconds() / static_cast<double>(done - first + 1);
    bar.show(
        static_cast<uint64_t>(done), static_cast<uint64_t>(n_steps),
        fmt::format("loss {:.4f}, {:.0f} tokens/s, {}", report.step.loss, report.tokens_per_second,
                    time_left(per_step * static_cast<double>(n_steps - done))));
  }
  bar.wipe();
  training.save();
  options.ranks->finish();
  const auto saved = training.folder().newest();
  const RunSettings& settings = training.folder().settings();
  print_log(settings.lora > 0
                ? fmt::format("saved {}; try it: limpid chat -m {} --lora {}", saved->path,
                              settings.model, path)
                : fmt::format("saved {}; try it: limpid run -m {}", saved->path, path));
  if (training.finished()) return kExitOk;
  print_log(fmt::format("stopped; go on with: limpid train --resume {}", path));
  return kExitInterrupted;
}

}  // namespace

Command train_command() {
  return {"train",
          "a model that learns from text",
          "train [options]",
          "Trains a new model, or goes on with one, on text files. The run's folder holds its "
          "settings, log.jsonl, and checkpoints: folders that `limpid run` and `transformers` "
          "open.\nCtrl-C finishes the step, saves and ends; --resume goes on from there.",
          "limpid train --preset shakespeare-char\n"
          "limpid train --config config.json --tokenizer tokenizer.json --data wiki.test.raw --out "
          "runs/a\n"
          "limpid train -m smollm2 --lora 8 --data wiki.test.raw --out runs/b\n"
          "limpid train --resume runs/a",
          bind<TrainFlags, declare, run>};
}

}  // namespace limpid::cli
