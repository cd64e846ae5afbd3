#include "limpid/batch.hpp"

#include <memory>

#include "base/check.h"
#include "generate/generation_task.h"

namespace limpid {
namespace {

// All tasks in the scheduler, with room in the cache. At the end, those that have not ended are
// removed.
class Submission {
 public:
  explicit Submission(Scheduler& scheduler) : scheduler_(scheduler) {}
  Submission(const Submission&) = delete;
  Submission& operator=(const Submission&) = delete;
  ~Submission() {
    for (const auto& task : tasks_) {
      scheduler_.remove(*task);
      scheduler_.unreserve(task->n_positions());
    }
  }

  void add(std::shared_ptr<Task> task) {
    scheduler_.reserve(task->n_positions());
    tasks_.push_back(std::move(task));
  }
  void run(const std::function<bool()>& is_enough) { scheduler_.run(tasks_, is_enough); }

 private:
  Scheduler& scheduler_;
  std::vector<std::shared_ptr<Task>> tasks_;
};

}  // namespace

std::vector<GenerationResult> generate_batch(
    const LanguageModel& model, std::span<const std::string> prompts,
    const GenerationOptions& options,
    const std::function<void(size_t i, std::string_view piece)>& on_text, int64_t n_ctx_each,
    std::vector<std::exception_ptr>* errors) {
  Engine& engine = *engine_of(model);
  LIMPID_CHECK(ArgumentError, n_ctx_each >= 0 && n_ctx_each <= engine.n_ctx(),
               "[batch] n_ctx_each is {}, must be between 1 and the model's {}, or 0 for that",
               n_ctx_each, engine.n_ctx());
  std::vector<GenerationResult> results(prompts.size());
  std::exception_ptr first_error;
  if (errors != nullptr) errors->assign(prompts.size(), nullptr);
  const auto set_error = [&](size_t i, std::exception_ptr error) {
    std::exception_ptr& place = errors != nullptr ? (*errors)[i] : first_error;
    if (!place) place = std::move(error);
  };
  const auto task_of = [&](size_t i) {
    std::vector<TokenId> ids = model.encode(prompts[i]);
    LIMPID_CHECK(ArgumentError, !ids.empty(),
                 "[batch] prompt {} is empty and the model has no BOS token to begin with", i);
    GenerationTask::Listener listener;
    listener.on_token = [&, i](std::string_view piece, const GenerationResult&) {
      if (on_text && !piece.empty()) on_text(i, piece);
    };
    listener.on_end = [&, i](const GenerationResult& result, std::exception_ptr error) {
      results[i] = result;
      set_error(i, std::move(error));
    };
    return std::make_shared<GenerationTask>(engine, std::move(ids), options,
                                            n_ctx_each > 0 ? n_ctx_each : engine.n_ctx(),
                                            std::move(listener));
  };
  Submission all(engine.scheduler());
  for (size_t i = 0; i < prompts.size() && !first_error; ++i) {
    try {
      all.add(task_of(i));
    } catch (...) {
      set_error(i, std::current_exception());
    }
  }
  if (!first_error) all.run([&] { return first_error != nullptr; });
  if (first_error) std::rethrow_exception(first_error);
  return results;
}

}  // namespace limpid
