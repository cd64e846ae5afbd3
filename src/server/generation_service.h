// What the APIs need from an engine: requests go in, tokens come out on the engine's thread.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "generate/embedding_task.h"
#include "generate/scheduler.h"
#include "limpid/generation.hpp"
#include "limpid/model.hpp"

namespace limpid {

// Some text of one choice became ready, with the tokens that were sampled since the event before.
// A token may come with another event than its text: a character may end in a later token, and text
// that may begin a stop string is held back.
struct TokenEvent {
  size_t choice = 0;
  std::string_view text{};  // whole UTF-8
  std::span<const TokenId> ids{};
  // Empty unless they were asked for. A token whose text is held back has them in a later event
  // than its id, and a token of a stop string in none.
  std::span<const TokenLogprobs> logprobs{};
};

// A place among the requests that run or wait; it is free again when nothing holds it.
using QueuePlace = std::shared_ptr<void>;

// One prompt, continued once for each of `choices`. The callbacks come one at a time on the
// engine's thread; they must not wait, throw, or call the service.
struct GenerationRequest {
  std::vector<TokenId> prompt;
  std::vector<GenerationOptions> choices;
  QueuePlace place{};
  std::shared_ptr<const AdapterMix> mix{};  // of the model's adapters; null: as it was opened
  int64_t slot = -1;                        // the slot to take if it is free; -1: any
  // It has left the queue and has this slot; -1: none, because it was cancelled in the queue, or
  // because others have all slots: the slots count requests, and the scheduler counts choices.
  std::function<void(int64_t slot)> on_start;
  // For each token of the prompt, in order, before on_token: GenerationTask::Listener has the same.
  std::function<void(const TokenLogprobs& token)> on_prompt_token{};
  // So many tokens of the prompt are done, of which `n_found` were in the KV cache: once after
  // on_start, then after each step of the prompt.
  std::function<void(int64_t n_done, int64_t n_found)> on_prompt{};
  std::function<void(const TokenEvent&)> on_token;
  // Once for each choice, also when it was cancelled. `rest` has its last tokens, which no call of
  // on_token had, and no text. With an error the result is what there was.
  std::function<void(const TokenEvent& rest, const GenerationResult&, std::exception_ptr error)>
      on_end;
};

// The queue is full.
class QueueFullError : public Error {
 public:
  using Error::Error;
};

// One text whose embedding is wanted.
struct EmbeddingRequest {
  std::vector<TokenId> tokens;
  Pooling pooling = Pooling::kMean;
  bool normalize = true;
  std::shared_ptr<const AdapterMix> mix{};
  QueuePlace place{};
  CancelToken cancel{};
  // Once, on the engine's thread; without an embedding when it was cancelled or failed.
  std::function<void(std::span<const float> embedding, std::exception_ptr error)> on_end;
};

struct ServiceOptions {
  int64_t n_parallel = 32;   // requests that run at a time
  int64_t n_queued = 256;    // most requests that wait
  int64_t n_ctx = 0;         // most tokens of a request, prompt and answer; 0: the model's context
  int64_t n_positions = 0;   // tokens in the KV cache, for all together; 0: one context
  double most_slowdown = 4;  // SchedulerOptions::most_slowdown
};

// Drives the scheduler of an engine on a thread of its own. All methods may be called from any
// thread, and none waits for a step, except save, restore and erase.
class GenerationService {
 public:
  // Throws ResourceError without memory for the KV cache.
  GenerationService(LanguageModel model, const ServiceOptions& options);
  ~GenerationService();  // what runs is cancelled

  // One for a request of a client, whatever its number of prompts: with one for each, a request of
  // many prompts could be refused by a server that has nothing else to do. Throws QueueFullError.
  QueuePlace take_place();
  // Throws ArgumentError for options out of range, ContextOverflowError for a prompt that does not
  // fit, and QueueFullError when the service ends.
  void submit(GenerationRequest request);
  void submit(EmbeddingRequest request);
  // Other work on the model, in pieces. `advance` is called between two steps, on the engine's
  // thread, and has the model to itself, until it returns false; it must not throw. Throws
  // QueueFullError when too much of it waits already.
  void submit(std::function<bool()> advance);

  Scheduler::Usage usage() const;
  // The most tokens that the prompt and the answer of a request may have.
  int64_t n_ctx() const;

  // A slot is the place of a request that runs, or of the last one that ran there.
  struct Slot {
    bool is_running = false;
    int64_t n_tokens = 0;  // of its prompt and its answer
  };
  int64_t n_slots() const { return options_.n_parallel; }
  std::vector<Slot> slots() const;
  // The KV cache of the slot's text, in a file: generate/prefix_file.h. Gives the number of tokens.
  // Throws ArgumentError for a slot that is running, that has no text, or whose text was evaluated
  // with a mix of adapters.
  int64_t save_slot(size_t slot, const std::string& path);
  int64_t restore_slot(size_t slot, const std::string& path);
  int64_t erase_slot(size_t slot);

 private:
  using Id = uint64_t;
  class RunningGeneration;
  struct SlotState {
    Id user = 0;                  // 0: nobody
    std::vector<TokenId> tokens;  // of the last user
    bool has_mix = false;         // its text was evaluated with a mix of adapters
  };

  void work();
  // A piece of the first of jobs_, which then goes to the end; false without one.
  bool advance_job();
  Id add(std::function<void()> cancel);
  void wake();
  int64_t take_slot(Id id, int64_t wanted);
  void end(Id id, std::vector<TokenId> tokens, bool has_mix);
  // A slot that nobody uses. Throws ArgumentError for any other.
  SlotState idle_slot(size_t slot) const;
  void set_tokens(size_t slot, std::vector<TokenId> tokens);

  LanguageModel model_;
  ServiceOptions options_;
  std::atomic<int64_t> n_places_{0};  // that are taken
  mutable std::mutex mutex_;          // guards what follows
  std::condition_variable submitted_;
  std::map<Id, std::function<void()>> cancels_;  // of all requests that have not ended
  std::deque<std::function<bool()>> jobs_;
  std::vector<SlotState> slots_;
  Id last_id_ = 0;
  bool has_work_ = false;
  bool is_ending_ = false;
  std::thread thread_;
};

}  // namespace limpid
