// `limpid bench`: tokens per second of prompts and of generation, compared with the limits of the
// machine.
//
// Why two numbers and not one: in a step, every weight is read once and serves all tokens of the
// step. A prompt brings hundreds of tokens to a step, so it is bound by arithmetic. Generation
// brings one, so it is bound by memory: a model of 98 MB at 28 GB/s cannot generate more than 286
// tokens a second, whatever the kernels do. A report therefore shows both limits beside each rate.
//
// Tokens are random, because no kernel is faster or slower for certain tokens, and the same in each
// run. The first repetition is not counted: it reads the weights from the disk, and threads and
// caches start cold.
#include "cli/bench.h"

#include <algorithm>
#include <limits>
#include <random>

#include "base/divide_up.h"
#include "cli/command.h"
#include "cli/model_path.h"
#include "generate/engine.h"

namespace limpid::cli {
namespace {

struct BenchFlags {
  ModelFlags model;
  std::string n_prompt = "512";
  std::string n_generate = "128";
  std::string depth = "0";
  int64_t n_repetitions = 5;
  std::string output = "md";
  bool ops = false;
};

// Runs prompts and generations of given lengths and counts the bytes and operations that they take
// at least. Bytes count once per step: a step of many tokens reads the weights once.
class Benchmark {
 public:
  // `timer`: the executor that the model runs on, when ops are asked for; else null.
  Benchmark(Model& model, const ModelFlags& flags, TimingExecutor* timer)
      : model_(model),
        timer_(timer),
        n_batch_(to_open_options(flags).n_batch),
        k_dtype_(cache_dtype(flags.options.cache_type_k)),
        v_dtype_(cache_dtype(flags.options.cache_type_v)),
        cost_(cost_of(model.checkpoint(), model.spec(), k_dtype_, v_dtype_)) {}

  // Measures n tokens after `depth` others: a prompt at once, with logits of the last, or generated
  // tokens one after another. A step reads the weights once, and the head where logits are wanted.
  BenchResult run(bool is_prompt, int64_t n, int64_t depth, int64_t n_repetitions) {
    BenchResult result;
    result.test = fmt::format("{}{}", is_prompt ? "pp" : "tg", n);
    if (depth > 0) result.test += fmt::format(" @ d{}", depth);
    result.depth = depth;
    (is_prompt ? result.n_prompt : result.n_generated) = n;
    const auto n_tokens = static_cast<double>(n);
    const auto before = static_cast<double>(depth);
    // Token i attends to depth + i positions. A prompt reads each position of the cache once.
    const double n_attended = n_tokens * (before + (n_tokens + 1) / 2);
    const double n_positions_read = is_prompt ? before + n_tokens : n_attended;
    const int64_t n_chunks = divide_up(n, n_batch_);
    const double n_steps = is_prompt ? static_cast<double>(n_chunks) : n_tokens;
    const double n_heads = is_prompt ? 1 : n_tokens;
    result.n_bytes = n_steps * static_cast<double>(cost_.weight_bytes - cost_.head_bytes) +
                     n_heads * static_cast<double>(cost_.head_bytes) +
                     n_positions_read * static_cast<double>(cost_.kv_bytes_per_position);
    result.n_flops =
        n_tokens * cost_.weight_flops + n_heads * cost_.head_flops +
        FlopCount{.f32 = n_attended * static_cast<double>(cost_.kv_flops_per_position)};
    measure(result, n_repetitions);
    return result;
  }

 private:
  void step(std::span<const int32_t> ids, StepItem::Outputs outputs) {
    const StepItem item{sequence_, ids, outputs};
    // A device that finds the best logits itself gives only those back, as in greedy decoding.
    if (outputs == StepItem::Outputs::kLast && model_.executor().most_best() > 0) {
      model_.step_best(*cache_, {&item, 1}, 1);
    } else {
      model_.step(*cache_, {&item, 1});
    }
  }

  void append(std::span<const int32_t> ids) {
    while (!ids.empty()) {
      const size_t n = std::min(ids.size(), static_cast<size_t>(n_batch_));
      step(ids.first(n), n == ids.size() ? StepItem::Outputs::kLast : StepItem::Outputs::kNone);
      ids = ids.subspan(n);
    }
  }

  // One run to warm up caches, then the repetitions. Each begins with `depth` positions in the
  // cache.
  void measure(BenchResult& result, int64_t n_repetitions) {
    const int64_t n_positions = result.depth + result.n_tokens();
    cache_ = model_.make_cache_for_one(n_positions, k_dtype_, v_dtype_);
    sequence_ = cache_->add_sequence();
    std::mt19937 random(20'240'101);
    std::uniform_int_distribution<int32_t> any_id(
        0, static_cast<int32_t>(model_.spec().vocab_size) - 1);
    std::vector<int32_t> ids(static_cast<size_t>(n_positions));
    for (int32_t& id : ids) id = any_id(random);
    const auto depth = static_cast<size_t>(result.depth);
    if (depth > 0) append(std::span(ids).first(depth));
    const std::span<const int32_t> tokens = std::span(ids).subspan(depth);
    ProgressBar bar(result.test);
    for (int64_t i = 0; i <= n_repetitions; ++i) {
      cache_->truncate(sequence_, result.depth);
      if (timer_ != nullptr && i == 1) timer_->take();  // what came before
      const Stopwatch watch;
      if (result.n_prompt > 0) append(tokens);
      for (int64_t t = 0; t < result.n_generated; ++t)
        step(tokens.subspan(static_cast<size_t>(t), 1), StepItem::Outputs::kLast);
      const double seconds = watch.seconds();
      if (i > 0) result.seconds.push_back(seconds);
      bar.show(i + 1, n_repetitions + 1);
    }
    if (timer_ != nullptr) result.ops = timer_->take();
  }

  Model& model_;
  TimingExecutor* timer_;
  int64_t n_batch_;
  DType k_dtype_;
  DType v_dtype_;
  TokenCost cost_;
  std::unique_ptr<KvCache> cache_;
  SequenceId sequence_ = 0;
};

// The head of the report: model, executor, machine, and the limits of that many threads.
BenchReport describe(Model& model, const ModelFlags& flags) {
  const Checkpoint& checkpoint = model.checkpoint();
  BenchReport report;
  report.model = checkpoint.metadata.string("general.name").value_or(model_name(checkpoint.path));
  for (const auto& [name, tensor] : checkpoint.tensors) {
    report.n_bytes += tensor.n_bytes();
    report.n_parameters += tensor.shape.n_elements();
  }
  const OpenOptions& options = flags.options;
  // "opencl:8+cpu" for layers on two devices, "cpu" when not one fits the device, and "cuda" when a
  // number of layers has chosen the first GPU.
  const std::string_view executor = model.executor().name();
  report.device = options.device.starts_with(executor) ? options.device : std::string(executor);
  report.machine = look_at_machine();
  if (report.device != "cpu") report.machine.isa = "none";
  const int n_threads = options.n_threads > 0 ? options.n_threads : report.machine.n_cores;
  report.limits.n_threads = n_threads;
  // The limits of the CPU do not apply to a GPU.
  if (report.device == "cpu" || report.device == "reference")
    report.limits = measure_limits(n_threads, options.products);
  return report;
}

void declare(CLI::App& app, BenchFlags& values) {
  add_option(app, "-p,--n-prompt LIST", values.n_prompt, "lengths of prompts; 0: none (512)");
  add_option(app, "-n,--n-gen LIST", values.n_generate, "lengths of generation; 0: none (128)");
  add_option(app, "-d,--n-depth LIST", values.depth, "positions in the cache beforehand (0)");
  add_option(app, "-r,--repetitions N", values.n_repetitions, {.least = 1},
             "repetitions of each test, after one that is not counted (5)");
  add_one_of(app, "-o,--output FORMAT", values.output, {"md", "csv", "json"},
             "md, csv or json (md)");
  add_switch(app, "--ops", values.ops, "also where the time goes, op by op (md, json)");
  declare_model(app, values.model);
}

// Reads whole numbers between commas. None may be negative.
std::vector<int64_t> parse_lengths(const std::string& text, const char* flag) {
  std::vector<int64_t> lengths = parse_integers(text, flag);
  LIMPID_CHECK(ArgumentError, !lengths.empty(), "{}: give at least one number", flag);
  const int64_t least = std::ranges::min(lengths);
  LIMPID_CHECK(ArgumentError, least >= 0, "{} {}: a number of tokens cannot be negative", flag,
               least);
  const int64_t most = std::ranges::max(lengths);
  LIMPID_CHECK(ArgumentError, most <= std::numeric_limits<int32_t>::max(),
               "{} {}: no context holds so many tokens", flag, most);
  return lengths;
}

void run(const BenchFlags& values) {
  LIMPID_CHECK(ArgumentError, !values.ops || values.output != "csv",
               "--ops: a table in a table does not go into csv; choose -o md or json");
  const auto prompts = parse_lengths(values.n_prompt, "-p");
  const auto lengths = parse_lengths(values.n_generate, "-n");
  const auto depths = parse_lengths(values.depth, "-d");
  LIMPID_CHECK(ArgumentError, std::ranges::max(prompts) > 0 || std::ranges::max(lengths) > 0,
               "nothing to measure: give -p or -n a number above 0");

  TimingExecutor* timer = nullptr;
  const auto model = load_weights_only(values.model, open_header(values.model),
                                       values.ops ? wrap_in(timer) : WrapExecutor());
  BenchReport report = describe(*model, values.model);
  Benchmark benchmark(*model, values.model, timer);
  for (const int64_t depth : depths) {
    for (const bool is_prompt : {true, false}) {
      for (const int64_t n : is_prompt ? prompts : lengths) {
        if (n == 0) continue;
        report.results.push_back(benchmark.run(is_prompt, n, depth, values.n_repetitions));
      }
    }
  }
  write_out(values.output == "md"    ? to_markdown(report)
            : values.output == "csv" ? to_csv(report)
                                     : to_json_text(report));
}

}  // namespace

Command bench_command() {
  return {"tokens per second, compared with the limits of this machine", "bench -m FILE [options]",
          "Tokens per second of prompts (pp) and of generation (tg), with the bytes read and the "
          "operations done\nper second, and their share of what this machine can do, which it "
          "measures. Random tokens.",
          "limpid bench -m smollm2 -p 512 -n 128 -t 2\n"
          "limpid bench -m smollm2 -p 0 -n 64 --ops\n"
          "limpid bench -m smollm2 -p 0 -n 64 -d 0,2048 -o json",
          bind<BenchFlags, declare, run>};
}

}  // namespace limpid::cli
