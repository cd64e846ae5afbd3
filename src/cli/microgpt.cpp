// `limpid microgpt`: trains the smallest complete language model, and lets it speak.
//
// Numbers of the configuration have three sources, the preset, the saved model and the options, and
// the options may come before --preset on the command line. So an option does not set a number. It
// adds a Change, a function that sets it, and all changes are applied when the preset is known. The
// list of changes also tells which options were given, for those that a saved model or a lesson
// refuses.
#include <algorithm>
#include <array>
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
using microgpt::Shape;
using microgpt::Trainer;

// A change of the preset's numbers that an option asks for. The preset itself is known only when
// all options are.
struct Change {
  std::string option;
  std::function<void(Config&)> apply;
};

struct MicrogptFlags {
  std::optional<std::string> preset;
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
  std::vector<Change> changes;
};

// Declares an option that sets a number of the configuration, or of its shape.
template <typename Owner, typename Number>
void add_number(CLI::App& app, MicrogptFlags& values, const std::string& declaration,
                Number Owner::*member, std::string help) {
  const std::string name = declaration.substr(0, declaration.find(' '));
  const auto read = [&values, member, name](const std::string& text) {
    Number number{};
    std::string problem = read_value(text, {}, number);
    if (!problem.empty()) return problem;
    values.changes.push_back({name, [=](Config& config) {
                                if constexpr (std::is_same_v<Owner, Shape>)
                                  config.shape.*member = number;
                                else
                                  config.*member = number;
                              }});
    return problem;
  };
  add_list(app, declaration, read, std::move(help));
}

void declare(CLI::App& app, MicrogptFlags& values) {
  group(app, "model");
  add_number(app, values, "--n_embd N", &Shape::n_embd, "width (16)");
  add_number(app, values, "--n_layer N", &Shape::n_layer, "transformer layers (1)");
  add_number(app, values, "--n_head N", &Shape::n_head, "attention heads (4)");
  add_number(app, values, "--block_size N", &Shape::block_size,
             "context, in tokens (8; python: 16)");
  group(app, "training");
  add_number(app, values, "--num_steps N", &Config::num_steps, "steps (10000; python: 1000)");
  add_number(app, values, "--learning_rate X", &Config::learning_rate,
             "at step 1; falls to 0 (0.01)");
  add_number(app, values, "--batch_size B", &Config::batch_size, "documents a step (1)");
  add_number(app, values, "--seed N", &Config::seed, "seed of all random numbers (42)");
  add_option(app, "--data FILE", values.data, "documents, one a line (default: 32,033 names)");
  add_option(app, "--input_url URL", values.input_url, "the same, fetched once and kept");
  add_option(app, "--preset NAME", values.preset, "fsharp or python: whose defaults (fsharp)");
  add_switch(app, "--python-rng", values.python_rng,
             "repeat Karpathy's Python, number for number (implies --preset python)");
  add_option(app, "--engine NAME", values.engine,
             "scalar: a graph of numbers; fast: matrices, no graph; tensor: as train (scalar)");
  add_option(app, "--dtype TYPE", values.dtype, "of the fast engine, f32 or f64 (f32)");
  add_option(app, "--save FILE", values.save, "keep what was learned (safetensors)");
  add_option(app, "--load FILE", values.load, "go on from there, with fresh moments of Adam");
  group(app, "samples");
  add_switch(app, "--sample-only", values.sample_only, "no training; needs --load");
  add_number(app, values, "--samples N", &Config::samples, "how many at the end (20)");
  add_number(app, values, "--temperature X", &Config::temperature,
             "low: careful, high: wild (0.5)");
  declare_watch(app, values.watch);
  group(app, "output");
  add_option(app, "--graph FILE", values.graph, "only draw a small graph of Values (SVG)");
  add_switch(app, "--json", values.json,
             "an object a step (step, loss) and a sample, for machines");
}

// First the preset, then what the options change of it, in whatever order they were given.
Config to_config(const MicrogptFlags& values) {
  LIMPID_CHECK(ArgumentError, !values.python_rng || values.preset.value_or("python") == "python",
               "--python-rng repeats the Python; it goes with --preset python only");
  Config config = microgpt::preset(values.python_rng ? "python" : values.preset.value_or("fsharp"));
  for (const Change& change : values.changes) change.apply(config);
  return config;
}

// `scalar` builds a node for each addition and multiplication of f64 numbers, as the originals do;
// `fast` does the same sums on whole matrices, `tensor` is what `limpid train` trains with.
Trainer::MakeEngine to_engine(const MicrogptFlags& values) {
  const std::string& dtype = values.dtype;
  LIMPID_CHECK(ArgumentError, dtype.empty() || dtype == "f32" || dtype == "f64",
               "no dtype '{}'; there are f32 and f64", dtype);
  if (values.engine == "scalar") {
    LIMPID_CHECK(ArgumentError, dtype != "f32", "the scalar engine works in f64; f32 is for fast");
    return microgpt::make_scalar_engine;
  }
  if (values.engine == "tensor") {
    LIMPID_CHECK(ArgumentError, dtype != "f64", "the tensor engine works in f32");
    return microgpt::make_tensor_engine;
  }
  LIMPID_CHECK(ArgumentError, values.engine == "fast",
               "no engine '{}'; there are scalar, fast and tensor", values.engine);
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

// Whether the option of a number is given; "--data" stands for --input_url too.
bool is_given(const MicrogptFlags& values, std::string_view option) {
  if (option == "--data") return !values.data.empty() || !values.input_url.empty();
  return std::ranges::find(values.changes, option, &Change::option) != values.changes.end();
}

// With --load the shape and the alphabet are those of the file, so options that set the shape are
// refused.
Trainer make_trainer(const MicrogptFlags& values) {
  Config config = to_config(values);
  const auto make_engine = to_engine(values);
  LIMPID_CHECK(ArgumentError, !values.sample_only || !values.load.empty(),
               "--sample-only needs --load FILE, a model to draw samples from");
  if (values.load.empty()) return {config, read_data(values), make_engine};
  for (const char* option : {"--n_embd", "--n_layer", "--n_head", "--block_size"})
    LIMPID_CHECK(ArgumentError, !is_given(values, option), "{} is fixed by --load {}; leave it out",
                 option, values.load);
  for (const char* option : {"--num_steps", "--learning_rate", "--batch_size", "--data"})
    LIMPID_CHECK(ArgumentError, !values.sample_only || !is_given(values, option),
                 "{} is for training, and --sample-only does none; leave it out", option);
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
  constexpr std::array<std::string_view, 3> kKept = {"--num_steps", "--learning_rate", "--seed"};
  const auto refuse = [&](bool is_given, std::string_view option) {
    LIMPID_CHECK(ArgumentError, !is_given,
                 "{} means nothing to the network of --watch-task; leave it out", option);
  };
  Config config = to_config(values);
  config.num_steps = 2000;
  for (const Change& change : values.changes) {
    refuse(std::ranges::find(kKept, change.option) == kKept.end(), change.option);
    change.apply(config);
  }
  refuse(values.preset.has_value() || values.python_rng, "--preset");
  refuse(values.engine != "scalar" || !values.dtype.empty(), "another engine");
  refuse(is_given(values, "--data"), "--data");
  refuse(!values.save.empty() || !values.load.empty() || values.sample_only, "--save or --load");
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
