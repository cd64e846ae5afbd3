// Evaluates tokens when it is told to, so that two programs can take turns:
// bench/compare_llama_cpp.py.
//
//   model_turns MODEL.gguf THREADS CONTEXT PRODUCTS
//
// Prints "ready", then for each line of standard input the seconds that it took: "prefill N" is a
// prompt of N tokens at position 0, "decode N" N tokens one by one after what is there, or from an
// empty context where they do not fit. "read N" reads as many bytes as the tensors have, N times,
// and computes nothing: no decode of N tokens can be faster. Float weights are read where they lie
// in the map of the file, as decode reads them; for packed weights anonymous memory takes their
// place. The tokens are random, and no vocabulary is needed.
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <iostream>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/stopwatch.h"
#include "checkpoint/gguf.h"
#include "executor/cpu/isa.h"
#include "executor/executors.h"
#include "model/model.h"

namespace limpid {
namespace {

// Reads some memory in the way that was the fastest of several when it was made.
class Reader {
 public:
  Reader(const Checkpoint& checkpoint, int n_threads) : n_threads_(n_threads) {
    bool packed = false;
    for (const auto& [name, tensor] : checkpoint.tensors) {
      n_bytes_ += static_cast<int64_t>(tensor.n_bytes());
      packed = packed || dtype_info(tensor.dtype).block_size > 1;
      if (data_ == nullptr || tensor.data < data_) data_ = tensor.data;
    }
    if (packed) {
      buffer_ = AlignedBuffer(static_cast<uint64_t>(n_bytes_));
      std::memset(buffer_.data(), 1, buffer_.size());
      data_ = buffer_.data();
    }
    read(1, 0);  // touches every page
    double best = INFINITY;
    for (const int n_streams : {1, 2, 4}) {
      for (const int64_t ahead : {0, 4096}) {
        const double seconds = read(n_streams, ahead);
        if (seconds >= best) continue;
        best = seconds;
        n_streams_ = n_streams;
        ahead_ = ahead;
      }
    }
  }

  double read() const { return read(n_streams_, ahead_); }

 private:
  double read(int n_streams, int64_t ahead) const {
    const int64_t share = n_bytes_ / n_threads_ / 64 * 64;
    const Stopwatch watch;
    std::vector<std::jthread> threads;
    for (int t = 0; t < n_threads_; ++t) {
      threads.emplace_back([=, this] {
        choose_isa("").kernels->read_streams(data_ + t * share, share, n_streams, ahead);
      });
    }
    threads.clear();  // joins
    return watch.seconds();
  }

  int n_threads_;
  int64_t n_bytes_ = 0;
  const std::byte* data_ = nullptr;
  AlignedBuffer buffer_;
  int n_streams_ = 1;
  int64_t ahead_ = 0;
};

class Turns {
 public:
  Turns(const std::string& path, int n_threads, int64_t context, const std::string& products)
      : n_threads_(n_threads), context_(context) {
    const ExecutorOptions options{n_threads, "", products};
    checkpoint_ = std::make_shared<const Checkpoint>(open_gguf(path));
    model_ = Model::load(checkpoint_, make_executor("cpu", options));
    cache_ = model_->make_cache(context);
    sequence_ = cache_->add_sequence();
  }

  double take(const std::string& phase, int64_t n_tokens) {
    if (phase == "read") return read(n_tokens);
    const bool prefill = phase == "prefill";
    if (prefill || position_ + n_tokens > context_) {
      cache_->truncate(sequence_, 0);
      position_ = 0;
    }
    position_ += n_tokens;
    std::uniform_int_distribution<int32_t> any_id(
        0, static_cast<int32_t>(model_->spec().vocab_size) - 1);
    std::vector<int32_t> ids(static_cast<size_t>(n_tokens));
    for (int32_t& id : ids) id = any_id(random_);
    const std::span<const int32_t> all(ids);
    const Stopwatch watch;
    if (prefill) {
      step(all);
    } else {
      for (size_t i = 0; i < all.size(); ++i) step(all.subspan(i, 1));
    }
    return watch.seconds();
  }

 private:
  double read(int64_t n_times) {
    if (reader_ == nullptr) reader_ = std::make_unique<Reader>(*checkpoint_, n_threads_);
    double seconds = 0;
    for (int64_t i = 0; i < n_times; ++i) seconds += reader_->read();
    return seconds;
  }

  void step(std::span<const int32_t> ids) {
    const StepItem item{sequence_, ids, StepItem::Outputs::kLast};
    model_->step(*cache_, {&item, 1});
  }

  int n_threads_;
  int64_t context_;
  std::shared_ptr<const Checkpoint> checkpoint_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<Reader> reader_;
  std::unique_ptr<KvCache> cache_;
  SequenceId sequence_ = 0;
  int64_t position_ = 0;
  std::mt19937 random_{20'240'101};
};

}  // namespace
}  // namespace limpid

int main(int argc, char** argv) try {
  if (argc != 5) {
    std::cerr << "usage: " << argv[0] << " MODEL.gguf THREADS CONTEXT PRODUCTS\n";
    return 1;
  }
  limpid::Turns turns(argv[1], std::atoi(argv[2]), std::atoll(argv[3]), argv[4]);
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
