// What server_load asks of a server, asked of the scheduler itself: bench/compare_server.py.
//
//   scheduler_load MODEL THREADS PROMPTS CLIENTS TOKENS SECONDS
//
// Each client has one task in the scheduler, and the next one when that has ended, with the next
// line of the file as the message of a user. Prints the tokens generated per second, from the end
// of the first task to the end of the last one, as server_load counts them.
#include <chrono>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "generate/chat_prompt.h"
#include "generate/engine.h"
#include "generate/generation_task.h"

namespace limpid {
namespace {

class Load {
 public:
  Load(const std::string& model, int n_threads, const std::string& prompts, int64_t n_clients,
       int64_t n_tokens)
      : model_(LanguageModel::open(model, options(n_threads))),
        prompts_(prompts),
        n_clients_(n_clients) {
    Engine& engine = *engine_of(model_);
    engine.scheduler().reserve(n_clients * 1024);
    generation_.n_predict = n_tokens;
    generation_.sampler.temperature = 0;
    generation_.sampler.ignore_eos = true;
    for (int64_t i = 0; i < n_clients; ++i) ask();
  }

  double run(double seconds) {
    const auto start = Clock::now();
    while (seconds_between(start, Clock::now()) < seconds || std::ssize(ends_) < 2 * n_clients_) {
      if (!engine_of(model_)->scheduler().tick()) throw std::runtime_error("too few prompts");
    }
    const auto n_tokens = static_cast<double>(ends_.back().n_generated - ends_[0].n_generated);
    return n_tokens / seconds_between(ends_[0].time, ends_.back().time);
  }

 private:
  using Clock = std::chrono::steady_clock;
  struct End {  // of a task
    Clock::time_point time;
    int64_t n_generated;  // by all until then
  };
  static double seconds_between(Clock::time_point from, Clock::time_point to) {
    return std::chrono::duration<double>(to - from).count();
  }
  static OpenOptions options(int n_threads) {
    OpenOptions options;
    options.n_threads = n_threads;
    return options;
  }

  void ask() {
    Engine& engine = *engine_of(model_);
    TemplateInputs inputs;
    std::string prompt;
    if (!std::getline(prompts_, prompt)) return;
    inputs.messages = {{{"role", "user"}, {"content", prompt}}};
    inputs.add_generation_prompt = true;
    GenerationTask::Listener listener;
    listener.on_token = [this](std::string_view, const GenerationResult&) { ++n_generated_; };
    listener.on_end = [this](const GenerationResult&, const std::exception_ptr& error) {
      if (error) std::rethrow_exception(error);
      ends_.push_back({Clock::now(), n_generated_});
      ask();
    };
    engine.scheduler().submit(std::make_shared<GenerationTask>(
        engine, encode_chat(*engine.tokenizer(), engine.chat_template(), std::move(inputs), ""),
        generation_, engine.n_ctx(), std::move(listener)));
  }

  LanguageModel model_;
  std::ifstream prompts_;
  int64_t n_clients_;
  GenerationOptions generation_;
  int64_t n_generated_ = 0;
  std::vector<End> ends_;
};

}  // namespace
}  // namespace limpid

int main(int argc, char** argv) try {
  if (argc != 7) {
    std::cerr << "usage: " << argv[0] << " MODEL THREADS PROMPTS CLIENTS TOKENS SECONDS\n";
    return 1;
  }
  limpid::Load load(argv[1], std::atoi(argv[2]), argv[3], std::atoi(argv[4]), std::atoi(argv[5]));
  std::cout << load.run(std::atof(argv[6])) << "\n";
  return 0;
} catch (const std::exception& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
