// Evaluates tokens when it is told to, so that two programs can take turns:
// bench/compare_llama_cpp.py.
//
//   model_turns MODEL.gguf THREADS
//
// Prints "ready", then for each line of standard input the seconds that it took: "prefill N" is a
// prompt of N tokens at position 0, "decode N" N tokens one by one after what is there, or from an
// empty context where they do not fit. The tokens are random, and no vocabulary is needed.
#include <chrono>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <random>
#include <string>
#include <vector>

#include "checkpoint/gguf.h"
#include "executor/executors.h"
#include "model/model.h"

namespace limpid {
namespace {

constexpr int64_t kContext = 1024;

class Turns {
 public:
  Turns(const std::string& path, int n_threads) {
    ExecutorOptions options;
    options.n_threads = n_threads;
    model_ = Model::load(std::make_shared<const Checkpoint>(open_gguf(path)),
                         make_executor("cpu", options));
    cache_ = model_->make_cache(kContext);
    sequence_ = cache_->add_sequence();
  }

  double take(const std::string& phase, int64_t n_tokens) {
    const bool prefill = phase == "prefill";
    if (prefill || position_ + n_tokens > kContext) {
      cache_->truncate(sequence_, 0);
      position_ = 0;
    }
    position_ += n_tokens;
    std::uniform_int_distribution<int32_t> any_id(
        0, static_cast<int32_t>(model_->spec().vocab_size) - 1);
    std::vector<int32_t> ids(static_cast<size_t>(n_tokens));
    for (int32_t& id : ids) id = any_id(random_);
    const std::span<const int32_t> all(ids);
    const auto begin = std::chrono::steady_clock::now();
    if (prefill) {
      step(all);
    } else {
      for (size_t i = 0; i < all.size(); ++i) step(all.subspan(i, 1));
    }
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }

 private:
  void step(std::span<const int32_t> ids) {
    const StepItem item{sequence_, ids, StepItem::Outputs::kLast};
    model_->step(*cache_, {&item, 1});
  }

  std::unique_ptr<Model> model_;
  std::unique_ptr<KvCache> cache_;
  SequenceId sequence_ = 0;
  int64_t position_ = 0;
  std::mt19937 random_{20'240'101};
};

}  // namespace
}  // namespace limpid

int main(int argc, char** argv) try {
  if (argc != 3) {
    std::cerr << "usage: " << argv[0] << " MODEL.gguf THREADS\n";
    return 1;
  }
  limpid::Turns turns(argv[1], std::atoi(argv[2]));
  std::cout << "ready" << std::endl;
  std::string phase;
  for (int64_t n_tokens = 0; std::cin >> phase >> n_tokens;) {
    std::cout << turns.take(phase, n_tokens) << std::endl;
  }
  return 0;
} catch (const std::exception& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
