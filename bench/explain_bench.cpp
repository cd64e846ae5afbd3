// What it costs to look into a model:
//
//   explain_bench MODEL.gguf THREADS [TOKENS [ROUNDS [TEXT]]]
//
//   run       all logits of TOKENS tokens (512), in steps of 256
//   heads     the output head once for each layer, for each token: what the logit lens needs
//   lens      the same in parts, with what the lens says of the logits: the likeliest tokens, the
//             entropy
//   explain   limpid::explain of the same tokens
//   bare      TOKENS / 8 tokens, one by one, on the executor alone
//   probe     the same within a ProbeExecutor that nobody uses
//
// The first four take turns, 256 tokens each, and so do the last two, a token each: a machine whose
// speed drifts is then as fast for one as for the other. Prints the medians over the rounds, and of
// each round's ratios: explain as a multiple of run after the heads or the lens are taken off, and
// probe / bare.
// The tokens are the first ones of the file TEXT. Without it they are random, no vocabulary is
// needed, and hardly a token comes twice, which a text's tokens do.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <random>

#include "base/check.h"
#include "base/mapped_file.h"
#include "base/stopwatch.h"
#include "checkpoint/gguf.h"
#include "executor/executors.h"
#include "insight/explanation.h"
#include "model/tokenizer_from_metadata.h"

namespace limpid {
namespace {

constexpr int64_t kStep = 256;

template <typename Work>
double seconds_of(Work work) {
  const Stopwatch watch;
  work();
  return watch.seconds();
}

double median(std::vector<double> values) {
  std::ranges::nth_element(values, values.begin() + std::ssize(values) / 2);
  return values[values.size() / 2];
}

// A sequence that is evaluated step by step.
class Run {
 public:
  Run(Model& model, int64_t n_tokens)
      : model_(model), cache_(model.make_cache(n_tokens, DType::kF32, DType::kF32)) {
    sequence_ = cache_->add_sequence();
  }
  double step(std::span<const int32_t> ids) {
    const StepItem item{sequence_, ids, StepItem::Outputs::kAll};
    return seconds_of([&] { model_.step(*cache_, {&item, 1}); });
  }

 private:
  Model& model_;
  std::unique_ptr<KvCache> cache_;
  SequenceId sequence_ = 0;
};

void read_lens(Model& model, LogitReader& reader, std::span<const float> streams, int64_t n_best) {
  reader.begin(kStep, n_best);
  model.read_out(streams, [&](const ColumnPart& part) { reader.see(part); });
  for (int64_t i = 0; i < kStep; ++i) reader.prediction(i);
}

// Seconds of one round.
struct Round {
  double run = 0;
  double heads = 0;
  double lens = 0;
  double explain = 0;
  double bare = 0;
  double probe = 0;
};

class Bench {
 public:
  Bench(const std::string& path, int n_threads, int64_t n_tokens, const std::string& text) {
    const auto checkpoint = std::make_shared<const Checkpoint>(open_gguf(path));
    ExecutorOptions options;
    options.n_threads = n_threads;
    options_.n_batch = kStep;
    bare_ = Model::load(checkpoint, make_executor("cpu", options));
    auto owned = std::make_unique<ProbeExecutor>(make_executor("cpu", options));
    probe_ = owned.get();
    probed_ = Model::load(checkpoint, std::move(owned));
    const DecoderSpec& spec = bare_->spec();
    std::mt19937 random{20'240'101};
    if (text.empty()) {
      std::uniform_int_distribution<int32_t> any_id(0, static_cast<int32_t>(spec.vocab_size) - 1);
      for (int64_t i = 0; i < n_tokens; ++i) ids_.push_back(any_id(random));
    } else {
      ids_ = tokenizer_from(*checkpoint)->encode(text_of(*MappedFile::open(text)));
      LIMPID_CHECK(ArgumentError, std::ssize(ids_) >= n_tokens, "{} has {} tokens, not {}", text,
                   ids_.size(), n_tokens);
      ids_.resize(static_cast<size_t>(n_tokens));
    }
    std::normal_distribution<float> normal;
    stream_.resize(static_cast<size_t>(kStep * spec.d_model));
    for (float& value : stream_) value = normal(random);
  }

  Round round() {
    Round round;
    const DecoderSpec& spec = probed_->spec();
    const int64_t n_lens_best = std::clamp<int64_t>(
        options_.most_lens / (std::ssize(ids_) * (spec.n_layers + 1)), 1, options_.n_lens_best);
    const auto for_layers = [&](auto work) {
      return seconds_of([&] {
        for (int64_t i = 0; i < spec.n_layers; ++i) work();
      });
    };
    LogitReader reader(spec.vocab_size);
    Run run(*probed_, std::ssize(ids_));
    std::unique_ptr<Explainer> explainer;
    round.explain += seconds_of(
        [&] { explainer = std::make_unique<Explainer>(*probed_, *probe_, ids_, options_); });
    for (size_t begin = 0; begin < ids_.size(); begin += kStep) {
      const size_t n = std::min<size_t>(ids_.size() - begin, kStep);
      round.run += run.step(std::span(ids_).subspan(begin, n));
      round.heads += for_layers([&] { probed_->read_out(stream_, [](const ColumnPart&) {}); });
      round.lens += for_layers([&] { read_lens(*probed_, reader, stream_, n_lens_best); });
      round.explain += seconds_of([&] { explainer->advance(); });
    }
    round.explain += seconds_of([&] { explainer->take(); });
    Run bare(*bare_, std::ssize(ids_));
    Run probe(*probed_, std::ssize(ids_));
    for (size_t i = 0; i < ids_.size() / 8; ++i) {
      const auto token = std::span(ids_).subspan(i, 1);
      round.bare += bare.step(token);
      round.probe += probe.step(token);
    }
    return round;
  }

 private:
  std::unique_ptr<Model> bare_;
  std::unique_ptr<Model> probed_;
  ProbeExecutor* probe_ = nullptr;  // of probed_
  ExplainOptions options_;
  std::vector<int32_t> ids_;
  std::vector<float> stream_;
};

void measure(const std::string& path, int n_threads, int64_t n_tokens, int n_rounds,
             const std::string& text) {
  Bench bench(path, n_threads, n_tokens, text);
  bench.round();  // warms up
  std::vector<Round> rounds;
  for (int i = 0; i < n_rounds; ++i) rounds.push_back(bench.round());
  const auto median_of = [&](auto value) {
    std::vector<double> values;
    for (const Round& each : rounds) values.push_back(value(each));
    return median(std::move(values));
  };
  fmt::print("run {:.3f} s, heads {:.3f} s, lens {:.3f} s, explain {:.3f} s\n",
             median_of([](const Round& r) { return r.run; }),
             median_of([](const Round& r) { return r.heads; }),
             median_of([](const Round& r) { return r.lens; }),
             median_of([](const Round& r) { return r.explain; }));
  fmt::print("explain: heads + {:.2f} runs, or lens + {:.2f} runs\n",
             median_of([](const Round& r) { return (r.explain - r.heads) / r.run; }),
             median_of([](const Round& r) { return (r.explain - r.lens) / r.run; }));
  fmt::print("{} tokens one by one: bare {:.4f} s, probe {:.4f} s: {:.4f}\n", n_tokens / 8,
             median_of([](const Round& r) { return r.bare; }),
             median_of([](const Round& r) { return r.probe; }),
             median_of([](const Round& r) { return r.probe / r.bare; }));
}

}  // namespace
}  // namespace limpid

int main(int argc, char** argv) try {
  if (argc < 3) {
    fmt::print(stderr, "usage: {} MODEL.gguf THREADS [TOKENS [ROUNDS [TEXT]]]\n", argv[0]);
    return 1;
  }
  limpid::measure(argv[1], std::atoi(argv[2]), argc > 3 ? std::atoi(argv[3]) : 512,
                  argc > 4 ? std::atoi(argv[4]) : 5, argc > 5 ? argv[5] : "");
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "{}\n", error.what());
  return 1;
}
