// `limpid microgpt`: trains the smallest complete language model, and lets it speak.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/check.h"
#include "cli/command.h"
#include "cli/download.h"
#include "cli/signals.h"
#include "cli/output.h"
#include "cli/output_path.h"
#include "train/microgpt/graph_picture.h"
#include "train/microgpt/model_file.h"
#include "train/microgpt/trainer.h"

namespace limpid::cli {
namespace {

using microgpt::Config;
using microgpt::Dataset;
using microgpt::Trainer;

constexpr const char* kExamples =
    "limpid microgpt\n"
    "limpid microgpt --n_embd 32 --n_layer 2 --n_head 4 --block_size 16 --num_steps 5000\n"
    "limpid microgpt --python-rng\n"
    "limpid microgpt --engine fast --n_embd 128 --n_layer 5 --batch_size 8 --save big.safetensors\n"
    "limpid microgpt --load big.safetensors --sample-only --temperature 0.8";

// What the command line says; what it does not say is the preset's.
struct MicrogptFlags {
  std::string preset = "fsharp";
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
  Config numbers;  // only those given count
};

void declare(Flags& flags, MicrogptFlags& values) {
  Config& numbers = values.numbers;
  flags.group("model");
  flags.integer("--n_embd N", numbers.shape.n_embd, "width [16]");
  flags.integer("--n_layer N", numbers.shape.n_layer, "transformer layers [1]");
  flags.integer("--n_head N", numbers.shape.n_head, "attention heads [4]");
  flags.integer("--block_size N", numbers.shape.block_size, "context, in tokens [8; python: 16]");
  flags.group("training");
  flags.integer("--num_steps N", numbers.num_steps, "steps [10000; python: 1000]");
  flags.number("--learning_rate X", numbers.learning_rate, "at step 1; falls to 0 [0.01]");
  flags.integer("--batch_size B", numbers.batch_size, "documents a step [1]");
  flags.integer("--seed N", numbers.seed, "of all random numbers [42]");
  flags.text("--data FILE", values.data, "documents, one a line [32,033 names]");
  flags.text("--input_url URL", values.input_url, "the same, fetched once and kept");
  flags.text("--preset NAME", values.preset, "fsharp or python: whose defaults [fsharp]");
  flags.toggle("--python-rng", values.python_rng,
               "repeat Karpathy's Python, number for number (implies --preset python)");
  flags.text("--engine NAME", values.engine,
             "scalar: a graph of numbers; fast: matrices, no graph [scalar]");
  flags.text("--dtype TYPE", values.dtype, "of the fast engine, f32 or f64 [f32]");
  flags.text("--save FILE", values.save, "keep what was learned (safetensors)");
  flags.text("--load FILE", values.load, "go on from there, with fresh moments of Adam");
  flags.group("samples");
  flags.toggle("--sample-only", values.sample_only, "no training; wants --load");
  flags.integer("--samples N", numbers.samples, "how many at the end [20]");
  flags.number("--temperature X", numbers.temperature, "low: careful, high: wild [0.5]");
  flags.group("output");
  flags.text("--graph FILE", values.graph, "draw a small graph of Values (SVG), and no more");
  flags.toggle("--json", values.json, "an object a step (step, loss) and a sample, for machines");
}

Config to_config(const Flags& flags, const MicrogptFlags& values) {
  LIMPID_CHECK(ArgumentError,
               !values.python_rng || !flags.given("--preset") || values.preset == "python",
               "--python-rng repeats the Python; it goes with --preset python only");
  Config config = microgpt::preset(values.python_rng ? "python" : values.preset);
  const Config& numbers = values.numbers;
  const auto take = [&](const char* name, auto& target, const auto& given) {
    if (flags.given(name)) target = given;
  };
  take("--n_embd", config.shape.n_embd, numbers.shape.n_embd);
  take("--n_layer", config.shape.n_layer, numbers.shape.n_layer);
  take("--n_head", config.shape.n_head, numbers.shape.n_head);
  take("--block_size", config.shape.block_size, numbers.shape.block_size);
  take("--num_steps", config.num_steps, numbers.num_steps);
  take("--learning_rate", config.learning_rate, numbers.learning_rate);
  take("--batch_size", config.batch_size, numbers.batch_size);
  take("--seed", config.seed, numbers.seed);
  take("--samples", config.samples, numbers.samples);
  take("--temperature", config.temperature, numbers.temperature);
  return config;
}

Trainer::MakeEngine to_engine(const MicrogptFlags& values) {
  const std::string& dtype = values.dtype;
  LIMPID_CHECK(ArgumentError, dtype.empty() || dtype == "f32" || dtype == "f64",
               "no dtype '{}'; there are f32 and f64", dtype);
  if (values.engine == "scalar") {
    LIMPID_CHECK(ArgumentError, dtype != "f32", "the scalar engine works in f64; f32 is for fast");
    return microgpt::make_scalar_engine;
  }
  LIMPID_CHECK(ArgumentError, values.engine == "fast", "no engine '{}'; there are scalar and fast",
               values.engine);
  if (dtype == "f64") return microgpt::make_fast_engine<double>;
  return microgpt::make_fast_engine<float>;
}

Dataset read_data(const MicrogptFlags& values) {
  LIMPID_CHECK(ArgumentError, values.data.empty() || values.input_url.empty(),
               "give one of --data and --input_url");
  std::string path = values.data;
  if (!values.input_url.empty()) path = download_once(values.input_url);
  if (path.empty()) return Dataset::parse(microgpt::names_text(), "names.txt");
  return Dataset::parse(read_text(path), path);
}

Trainer make_trainer(const Flags& flags, const MicrogptFlags& values) {
  Config config = to_config(flags, values);
  const auto make_engine = to_engine(values);
  LIMPID_CHECK(ArgumentError, !values.sample_only || !values.load.empty(),
               "--sample-only wants --load FILE, a model to draw samples from");
  if (values.load.empty()) return {config, read_data(values), make_engine};
  for (const char* flag : {"--n_embd", "--n_layer", "--n_head", "--block_size"}) {
    LIMPID_CHECK(ArgumentError, !flags.given(flag), "{} is fixed by --load {}; leave it out", flag,
                 values.load);
  }
  auto saved = microgpt::load_model(values.load);
  config.shape = saved.shape;
  return {config, values.sample_only ? Dataset() : read_data(values), std::move(saved.alphabet),
          std::move(saved.weights), make_engine};
}

void save(const Trainer& trainer, const MicrogptFlags& values) {
  const bool f32 = values.engine == "fast" && values.dtype != "f64";
  microgpt::save_model(values.save,
                       {trainer.config().shape, trainer.alphabet(), trainer.engine().weights()},
                       f32 ? microgpt::SavedType::kF32 : microgpt::SavedType::kF64);
}

void print_head(const Trainer& trainer) {
  const microgpt::Matrices matrices(trainer.config().shape);
  write_out(fmt::format("num docs: {}\nvocab size: {}\nnum params: {}\n", trainer.n_documents(),
                        trainer.alphabet().vocab_size(), matrices.n_params));
}

// Lines as the originals print them, or an object a step.
void report_step(const Trainer& trainer, double loss, bool json, bool on_terminal,
                 ProgressBar& bar) {
  const int64_t step = trainer.steps_done();
  const Config& config = trainer.config();
  const bool due = step % config.steps_between_lines == 0 || step == config.num_steps;
  if (on_terminal && (json || due)) bar.wipe();
  if (json) {
    write_out(fmt::format("{{\"step\":{},\"loss\":{}}}\n", step,
                          std::isfinite(loss) ? fmt::format("{:.17g}", loss) : "null"));
  } else if (due) {
    write_out(fmt::format("step {:4} / {:4} | loss {:.4f}\n", step, config.num_steps, loss));
  }
  if (on_terminal && (json || due)) flush_out();
}

// False when Ctrl-C ended it early.
bool train(Trainer& trainer, bool json) {
  InterruptGuard interrupt;
  ProgressBar bar("training");
  const bool on_terminal = stdout_is_terminal();
  const Config& config = trainer.config();
  while (trainer.steps_done() < config.num_steps) {
    if (interrupt.interrupted()) return false;
    const double loss = trainer.step();
    report_step(trainer, loss, json, on_terminal, bar);
    if (trainer.steps_done() % 16 == 0) {
      bar.show(static_cast<uint64_t>(trainer.steps_done()), static_cast<uint64_t>(config.num_steps),
               fmt::format("loss {:.4f}", loss));
    }
  }
  return true;
}

void print_samples(Trainer& trainer, bool json) {
  if (!json) write_out("\n--- inference (new, hallucinated names) ---\n");
  for (int64_t i = 1; i <= trainer.config().samples; ++i) {
    const std::string text = trainer.sample();
    if (json) {
      write_out(nlohmann::ordered_json{{"sample", i}, {"text", text}}.dump() + "\n");
    } else {
      write_out(fmt::format("sample {:2}: {}\n", i, text));
    }
  }
}

int draw_graph(const std::string& path) {
  write_text(path, microgpt::example_graph_svg());
  return kExitOk;
}

}  // namespace

int microgpt_command(const Arguments& arguments) {
  MicrogptFlags values;
  Flags flags(
      "microgpt [options]",
      "Trains the smallest complete language model on names, then lets it make up new ones.",
      kExamples);
  declare(flags, values);
  if (!flags.parse(arguments)) return kExitOk;
  if (!values.graph.empty()) return draw_graph(values.graph);
  if (!values.save.empty()) {
    refuse_standard_output(values.save);
    check_writable(values.save);
  }
  Trainer trainer = make_trainer(flags, values);
  bool finished = true;
  if (!values.sample_only) {
    if (!values.json) print_head(trainer);
    finished = train(trainer, values.json);
  }
  if (!values.save.empty()) save(trainer, values);
  print_samples(trainer, values.json);
  return finished ? kExitOk : kExitInterrupted;
}

}  // namespace limpid::cli
