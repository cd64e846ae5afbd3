// `limpid microgpt`: trains the smallest complete language model, and lets it speak.
//
// Options of numbers change what the preset says, and may come before --preset on the command line.
// CLI11 reads the values in the order in which the options are declared, so the presets are
// declared first.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/atomic_file.h"
#include "base/cache_folder.h"
#include "base/sha256.h"
#include "cli/command.h"
#include "cli/http_file.h"
#include "cli/output_path.h"
#include "cli/signals.h"
#include "cli/watch_network.h"
#include "train/microgpt/graph_picture.h"
#include "train/microgpt/model_file.h"
#include "train/microgpt/trainer.h"
#include "train/watch/lesson.h"
#include "train/watch/microgpt_view.h"

namespace limpid::cli {
namespace {

namespace fs = std::filesystem;
using microgpt::Config;
using microgpt::Dataset;
using microgpt::Trainer;

struct MicrogptFlags {
  std::string preset;
  bool python_rng = false;
  std::string data;
  std::string input_url;
  std::string engine = "scalar";
  std::string dtype;
  std::string save;
  std::string load;
  bool sample_only = false;
  bool json = false;
  std::string graph;
  WatchFlags watch;
  Config config;
  const CLI::App* app = nullptr;  // which knows what was given
};

void declare(CLI::App& app, MicrogptFlags& values) {
  Config& config = values.config;
  values.app = &app;
  group(app, "preset");
  add_list(
      app, "--preset NAME",
      [&](const std::string& name) {
        values.config = microgpt::preset(values.preset = name);
        return "";
      },
      "fsharp or python: whose defaults (fsharp)");
  add_switch(app, "--python-rng", values.python_rng,
             "repeat Karpathy's Python, number for number (implies --preset python)")
      ->each([&](const std::string& is_on) {
        if (is_on == "true") values.config = microgpt::preset("python");
      });
  group(app, "model");
  add_option(app, "--n_embd N", config.shape.n_embd, "width (16)");
  add_option(app, "--n_layer N", config.shape.n_layer, "transformer layers (1)");
  add_option(app, "--n_head N", config.shape.n_head, "attention heads (4)");
  add_option(app, "--block_size N", config.shape.block_size, "context, in tokens (8; python: 16)");
  group(app, "training");
  add_option(app, "--num_steps N", config.num_steps, "steps (10000; python: 1000)");
  add_option(app, "--learning_rate X", config.learning_rate, "at step 1; falls to 0 (0.01)");
  add_option(app, "--batch_size B", config.batch_size, "documents a step (1)");
  add_option(app, "--seed N", config.seed, "seed of all random numbers (42)");
  add_option(app, "--data FILE", values.data, "documents, one a line (default: 32,033 names)");
  add_option(app, "--input_url URL", values.input_url, "the same, fetched once and kept");
  add_one_of(app, "--engine NAME", values.engine, {"scalar", "fast", "tensor"},
             "scalar: a graph of numbers; fast: matrices, no graph; tensor: as train (scalar)");
  add_one_of(app, "--dtype TYPE", values.dtype, {"f32", "f64"},
             "of the fast engine, f32 or f64 (f32)");
  add_option(app, "--save FILE", values.save, "keep what was learned (safetensors)");
  add_option(app, "--load FILE", values.load, "go on from there, with fresh moments of Adam");
  group(app, "samples");
  add_switch(app, "--sample-only", values.sample_only, "no training; needs --load");
  add_option(app, "--samples N", config.samples, "how many at the end (20)");
  add_option(app, "--temperature X", config.temperature, "low: careful, high: wild (0.5)");
  declare_watch(app, values.watch);
  group(app, "output");
  add_option(app, "--graph FILE", values.graph, "only draw a small graph of Values (SVG)");
  add_switch(app, "--json", values.json,
             "an object a step (step, loss) and a sample, for machines");
}

// `scalar` builds a node for each addition and multiplication of f64 numbers, as the originals do;
// `fast` does the same sums on whole matrices, `tensor` is what `limpid train` trains with.
Trainer::MakeEngine to_engine(const MicrogptFlags& values) {
  const std::string& dtype = values.dtype;
  if (values.engine == "scalar") {
    LIMPID_CHECK(ArgumentError, dtype != "f32", "the scalar engine works in f64; f32 is for fast");
    return microgpt::make_scalar_engine;
  }
  if (values.engine == "tensor") {
    LIMPID_CHECK(ArgumentError, dtype != "f64", "the tensor engine works in f32");
    return microgpt::make_tensor_engine;
  }
  if (dtype == "f64") return microgpt::make_fast_engine<double>;
  return microgpt::make_fast_engine<float>;
}

constexpr uint64_t kMaxBytes = uint64_t{1} << 30;

// One name per address; the end of the address stays readable.
std::string file_name_of(const std::string& url) {
  std::string name = url.substr(url.rfind('/') + 1);
  const auto is_odd = [](unsigned char c) { return std::isalnum(c) == 0 && c != '.' && c != '-'; };
  std::ranges::replace_if(name, is_odd, '_');
  constexpr size_t kDigits = 12;
  constexpr size_t kLongest = 64;
  return sha256_of(url).substr(0, kDigits) + "-" + name.substr(0, kLongest);
}

// The path of a copy of `url` in the cache. It is fetched the first time and kept.
// The file appears only when the download is complete, so a file that is there is whole.
std::string download_once(const std::string& url) {
  LIMPID_CHECK(ArgumentError, url.starts_with("https://") || url.starts_with("http://"),
               "{} does not begin with https:// or http://", url);
  const fs::path folder = cache_folder("data");
  const fs::path path = folder / file_name_of(url);
  if (!fs::exists(path)) {
    make_folder(folder);
    write_file(path, http_get({url, {}}, kMaxBytes));
  }
  return path;
}

// Without an option, the names that are built into the library.
Dataset read_data(const MicrogptFlags& values) {
  LIMPID_CHECK(ArgumentError, values.data.empty() || values.input_url.empty(),
               "give one of --data and --input_url");
  const std::string path = values.input_url.empty() ? values.data : download_once(values.input_url);
  if (path.empty()) return Dataset::parse(microgpt::names_text(), "names.txt");
  return Dataset::parse(read_text(path), path);
}

// Throws ArgumentError for the first of the options that is given; `why` says why it may not be.
void refuse(const MicrogptFlags& values, std::initializer_list<const char*> options,
            std::string_view why) {
  for (const char* option : options)
    LIMPID_CHECK(ArgumentError, !is_given(*values.app, option), "{} {}; leave it out", option, why);
}

// With --load the shape and the alphabet are those of the file, so options that set the shape are
// refused.
Trainer make_trainer(const MicrogptFlags& values) {
  const Config& config = values.config;
  const auto make_engine = to_engine(values);
  LIMPID_CHECK(ArgumentError, !values.sample_only || !values.load.empty(),
               "--sample-only needs --load FILE, a model to draw samples from");
  if (values.load.empty()) return {config, read_data(values), make_engine};
  refuse(values, {"--n_embd", "--n_layer", "--n_head", "--block_size"},
         fmt::format("is fixed by --load {}", values.load));
  if (values.sample_only)
    refuse(values, {"--num_steps", "--learning_rate", "--batch_size", "--data", "--input_url"},
           "is for training, and --sample-only does none");
  const auto saved = microgpt::load_model(values.load);
  return {config, values.sample_only ? Dataset() : read_data(values), make_engine, &saved};
}

void save(const Trainer& trainer, const MicrogptFlags& values) {
  const bool f32 = values.engine != "scalar" && values.dtype != "f64";
  microgpt::save_model(at_end_of_links(values.save),
                       {trainer.config().shape, trainer.alphabet(), trainer.engine().weights()},
                       f32 ? DType::kF32 : DType::kF64);
}

void print_head(const Trainer& trainer) {
  const microgpt::Matrices matrices(trainer.config().shape);
  write_out(fmt::format("num docs: {}\nvocab size: {}\nnum params: {}\n", trainer.n_documents(),
                        trainer.alphabet().vocab_size(), matrices.n_params));
}

// Lines as the originals print them, or an object a step.
void report_step(const Config& config, int64_t step, double loss, bool json, bool on_terminal,
                 ProgressBar& bar) {
  const bool due = step % config.steps_between_lines == 0 || step == config.num_steps;
  if (!json && !due) return;
  if (on_terminal) bar.wipe();
  write_out(json ? fmt::format("{{\"step\":{},\"loss\":{}}}\n", step,
                               std::isfinite(loss) ? fmt::format("{:.17g}", loss) : "null")
                 : fmt::format("step {:4} / {:4} | loss {:.4f}\n", step, config.num_steps, loss));
  if (on_terminal) flush_out();
}

// Runs the steps of a trainer or a lesson. `watch` may be null. False when Ctrl-C ended it early.
template <typename Run>
bool train(Run& run, NetworkWatch* watch, bool json) {
  InterruptGuard interrupt;
  const auto interrupted = [&] { return interrupt.interrupted(); };
  ProgressBar bar("training");
  const bool on_terminal = stdout_is_terminal();
  const Config& config = run.config();
  if (watch != nullptr) watch->wait_for_page(interrupted);
  while (run.steps_done() < config.num_steps && !interrupted()) {
    const double loss = run.look();
    if (watch != nullptr) watch->step(run.steps_done(), loss, interrupted);
    run.update();
    report_step(config, run.steps_done(), loss, json, on_terminal, bar);
    // A user who watches can lower the rate and look at the numbers, so a watched run goes on.
    LIMPID_CHECK(Error, watch != nullptr || std::isfinite(loss),
                 "training diverged at step {}: the loss is {}; lower --learning_rate",
                 run.steps_done(), std::abs(loss));
    if (run.steps_done() % 16 == 0)
      bar.show(run.steps_done(), config.num_steps, fmt::format("loss {:.4f}", loss));
  }
  return run.steps_done() == config.num_steps;
}

// The lesson has one network and makes its own data, so options of microgpt that mean nothing to it
// are refused.
int run_lesson(const MicrogptFlags& values) {
  refuse(values,
         {"--preset", "--python-rng", "--n_embd", "--n_layer", "--n_head", "--block_size",
          "--batch_size", "--data", "--input_url", "--engine", "--dtype", "--save", "--load",
          "--sample-only", "--samples", "--temperature"},
         "means nothing to the network of --watch-task");
  Config config = values.config;
  if (!is_given(*values.app, "--num_steps")) config.num_steps = 2000;
  Lesson lesson(values.watch.task, config);
  NetworkWatch watch(values.watch,
                     {lesson.network(), [&] { return lesson.snapshot(); },
                      [&](double rate) { lesson.set_learning_rate(rate); }},
                     config);
  const bool finished = train(lesson, &watch, values.json);
  watch.finish(lesson.look());
  const double accuracy = lesson.accuracy();
  write_out(values.json ? Json{{"accuracy", accuracy}}.dump() + "\n"
                        : fmt::format("accuracy {:.3f}\n", accuracy));
  return finished ? kExitOk : kExitInterrupted;
}

// A trainer that is watched, or null.
std::unique_ptr<NetworkWatch> make_watch(const MicrogptFlags& values, Trainer& trainer) {
  if (!values.watch.any()) return nullptr;
  const auto view = std::make_shared<MicrogptView>(trainer);
  return std::make_unique<NetworkWatch>(
      values.watch,
      ShownNetwork{view->network(), [&trainer, view] { return view->snapshot(trainer); },
                   [&trainer](double rate) { trainer.set_learning_rate(rate); }},
      trainer.config());
}

void print_samples(Trainer& trainer, bool json) {
  if (!json) write_out("\n--- inference (new, hallucinated names) ---\n");
  for (int64_t i = 1; i <= trainer.config().samples; ++i) {
    const std::string text = trainer.sample();
    write_out(json ? Json{{"sample", i}, {"text", text}}.dump() + "\n"
                   : fmt::format("sample {:2}: {}\n", i, text));
  }
}

int run(const MicrogptFlags& values) {
  if (!values.graph.empty()) {
    write_text(values.graph, microgpt::example_graph_svg());
    return kExitOk;
  }
  check_watch(values.watch);
  LIMPID_CHECK(ArgumentError,
               !values.python_rng || values.preset.empty() || values.preset == "python",
               "--python-rng repeats the Python; it goes with --preset python only");
  LIMPID_CHECK(ArgumentError, !values.sample_only || !values.watch.any(),
               "--sample-only trains nothing that could be watched; leave --watch and --film out");
  if (!values.watch.task.empty()) return run_lesson(values);
  if (!values.save.empty()) {
    refuse_standard_output(values.save);
    check_writable(values.save);
  }
  Trainer trainer = make_trainer(values);
  bool finished = true;
  std::unique_ptr<NetworkWatch> watch;
  if (!values.sample_only) {
    if (!values.json) print_head(trainer);
    watch = make_watch(values, trainer);
    finished = train(trainer, watch.get(), values.json);
  }
  if (!values.save.empty()) save(trainer, values);
  if (watch) watch->finish(trainer.look());  // last: the disk may have no room for a film
  print_samples(trainer, values.json);
  return finished ? kExitOk : kExitInterrupted;
}

}  // namespace

Command microgpt_command() {
  return {"the smallest language model that learns", "microgpt [options]",
          "Trains the smallest complete language model on names, then lets it make up new ones.",
          "limpid microgpt\n"
          "limpid microgpt --n_embd 32 --n_layer 2 --n_head 4 --block_size 16 --num_steps 5000\n"
          "limpid microgpt --python-rng\n"
          "limpid microgpt --engine fast --n_embd 128 --n_layer 5 --batch_size 8 --save "
          "big.safetensors\n"
          "limpid microgpt --load big.safetensors --sample-only --temperature 0.8\n"
          "limpid microgpt --watch-task spiral\n"
          "limpid microgpt --watch --film names.html",
          bind<MicrogptFlags, declare, run>};
}

}  // namespace limpid::cli
