// What it costs to look into a model, each figure beside another of the same round:
//
//   explain_bench MODEL.gguf THREADS [TOKENS [ROUNDS]]
//
//   run       all logits of TOKENS tokens (512), in steps of 64
//   heads     the output head once for each layer, for each token: what the logit lens needs
//   lens      the same with what the lens says of the logits: the likeliest tokens, the entropy
//   explain   limpid::explain of the same tokens
//   bare      TOKENS / 8 tokens, one by one, on the executor alone
//   probe     the same within a ProbeExecutor that nobody uses
//
// Prints the medians, explain as a multiple of run after the heads or the lens are taken off, and
// probe / bare.
// The tokens are random, and no vocabulary is needed.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <random>

#include "base/thread_pool.h"
#include "checkpoint/gguf.h"
#include "executor/executors.h"
#include "insight/explanation.h"

namespace limpid {
namespace {

constexpr int64_t kStep = 64;
constexpr int kPairs = 8;  // of bare and probe in a round

template <typename Work>
double seconds_of(Work work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

double median(std::vector<double> values) {
  std::ranges::nth_element(values, values.begin() + std::ssize(values) / 2);
  return values[values.size() / 2];
}

void run(Model& model, std::span<const int32_t> ids, int64_t n_step, StepItem::Outputs outputs) {
  const auto cache = model.make_cache(std::ssize(ids), DType::kF32, DType::kF32);
  const SequenceId sequence = cache->add_sequence();
  for (size_t begin = 0; begin < ids.size(); begin += static_cast<size_t>(n_step)) {
    const size_t n = std::min(ids.size() - begin, static_cast<size_t>(n_step));
    const StepItem item{sequence, ids.subspan(begin, n), outputs};
    model.step(*cache, {&item, 1});
  }
}

void predict_all(ThreadPool& pool, std::span<const float> logits, int64_t vocab_size,
                 int64_t n_best) {
  pool.for_ranges(std::ssize(logits) / vocab_size, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i)
      predict(logits.subspan(static_cast<size_t>(i * vocab_size), static_cast<size_t>(vocab_size)),
              n_best);
  });
}

void measure(const std::string& path, int n_threads, int64_t n_tokens, int n_rounds) {
  const auto checkpoint = std::make_shared<const Checkpoint>(open_gguf(path));
  ExecutorOptions options;
  options.n_threads = n_threads;
  const auto bare = Model::load(checkpoint, make_executor("cpu", options));
  auto owned = std::make_unique<ProbeExecutor>(make_executor("cpu", options));
  ProbeExecutor& probe = *owned;
  const auto probed = Model::load(checkpoint, std::move(owned));
  const DecoderSpec& spec = bare->spec();
  std::mt19937 random{20'240'101};
  std::uniform_int_distribution<int32_t> any_id(0, static_cast<int32_t>(spec.vocab_size) - 1);
  std::vector<int32_t> ids(static_cast<size_t>(n_tokens));
  for (int32_t& id : ids) id = any_id(random);
  const auto few = std::span(ids).first(static_cast<size_t>(n_tokens / 8));
  std::normal_distribution<float> normal;
  std::vector<float> stream(static_cast<size_t>(kStep * spec.d_model));
  for (float& value : stream) value = normal(random);
  ExplainOptions explaining;
  explaining.n_threads = n_threads;

  ThreadPool pool(n_threads);
  const int64_t n_lens_best = std::clamp<int64_t>(
      explaining.most_lens / (n_tokens * (spec.n_layers + 1)), 1, explaining.n_lens_best);
  std::vector<double> runs, heads, lenses, explains, bares, probes, ratios, lens_ratios, taps;
  for (int round = -1; round < n_rounds; ++round) {
    const double all = seconds_of([&] { run(*probed, ids, kStep, StepItem::Outputs::kAll); });
    const double head = seconds_of([&] {
      for (int64_t i = 0; i < n_tokens / kStep * spec.n_layers; ++i) probed->read_out(stream);
    });
    const double lens = seconds_of([&] {
      for (int64_t i = 0; i < n_tokens / kStep * spec.n_layers; ++i)
        predict_all(pool, probed->read_out(stream), spec.vocab_size, n_lens_best);
    });
    const double explained = seconds_of([&] { explain(*probed, probe, ids, explaining); });
    const auto decode = [&](Model& model) {
      return seconds_of([&] { run(model, few, 1, StepItem::Outputs::kLast); });
    };
    for (int pair = 0; pair < kPairs; ++pair) {  // in turns, first the one, then the other
      const bool bare_first = pair % 2 == 0;
      const double first = decode(bare_first ? *bare : *probed);
      const double second = decode(bare_first ? *probed : *bare);
      if (round < 0) continue;
      bares.push_back(bare_first ? first : second);
      probes.push_back(bare_first ? second : first);
      taps.push_back(probes.back() / bares.back());
    }
    if (round < 0) continue;  // the first round warms up
    runs.push_back(all);
    heads.push_back(head);
    explains.push_back(explained);
    ratios.push_back((explained - head) / all);
    lenses.push_back(lens);
    lens_ratios.push_back((explained - lens) / all);
  }
  fmt::print("run {:.3f} s, heads {:.3f} s, lens {:.3f} s, explain {:.3f} s\n", median(runs),
             median(heads), median(lenses), median(explains));
  fmt::print("explain: heads + {:.2f} runs, or lens + {:.2f} runs\n", median(ratios),
             median(lens_ratios));
  fmt::print("{} tokens one by one: bare {:.4f} s, probe {:.4f} s: {:.4f}\n", few.size(),
             median(bares), median(probes), median(taps));
}

}  // namespace
}  // namespace limpid

int main(int argc, char** argv) try {
  if (argc < 3) {
    fmt::print(stderr, "usage: {} MODEL.gguf THREADS [TOKENS [ROUNDS]]\n", argv[0]);
    return 1;
  }
  limpid::measure(argv[1], std::atoi(argv[2]), argc > 3 ? std::atoi(argv[3]) : 512,
                  argc > 4 ? std::atoi(argv[4]) : 5);
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "{}\n", error.what());
  return 1;
}
