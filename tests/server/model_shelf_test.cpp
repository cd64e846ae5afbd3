// The shelf with tiny models: which one is loaded, which one leaves, and who waits.
#include "server/model_shelf.h"

#include <gtest/gtest.h>

#include <future>

#include "generate/tiny_model.h"

namespace limpid::testing {
namespace {

class ModelShelfTest : public ::testing::Test {
 protected:
  struct Lent {
    ModelShelf::Loan loan;
    std::exception_ptr error;
  };

  // Offers models "a", "b", … Loading waits while the test holds `gate_`.
  void offer(const ShelfLimits& limits, size_t n_models, uint64_t n_bytes = 1) {
    shelf_ = std::make_unique<ModelShelf>(limits);
    for (size_t i = 0; i < n_models; ++i) {
      const std::string name(1, static_cast<char>('a' + i));
      shelf_->add({{.name = name, .path = name + ".gguf", .n_bytes = n_bytes}, [this, name] {
                     const std::lock_guard gate(gate_);
                     loaded_ += name;
                     if (name == broken_) throw ResourceError("no memory");
                     return make_served_model(open_tiny(), name, {}, {.n_parallel = 1});
                   }});
    }
  }
  std::future<Lent> ask(const std::string& name) {
    auto lent = std::make_shared<std::promise<Lent>>();
    shelf_->lend(name, true, last_ticket_ = shelf_->new_ticket(),
                 [lent](ModelShelf::Loan loan, const std::exception_ptr& error) {
                   lent->set_value({std::move(loan), error});
                 });
    return lent->get_future();
  }
  ModelShelf::Loan borrow(const std::string& name) { return ask(name).get().loan; }
  std::string on_shelf() {
    std::string names;
    for (const ModelShelf::Entry& entry : shelf_->list())
      if (entry.state == ShelfState::kLoaded) names += entry.card.name;
    return names;
  }
  void wait_for(std::string_view name, ShelfState state) {
    while (shelf_->look_at(name).state != state)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  static bool is_there(std::future<Lent>& lent) {
    return lent.wait_for(std::chrono::milliseconds(50)) == std::future_status::ready;
  }

  std::mutex gate_;
  std::string loaded_;  // names, in the order in which they were loaded
  std::string broken_;
  ModelShelf::Ticket last_ticket_ = 0;
  std::unique_ptr<ModelShelf> shelf_;  // last: its thread uses the others
};

TEST_F(ModelShelfTest, LoadsWhatIsAskedForOnce) {
  offer({}, 3);
  EXPECT_EQ(on_shelf(), "");
  EXPECT_EQ(borrow("b")->name, "b");
  EXPECT_EQ(borrow("b")->name, "b");
  EXPECT_EQ(borrow("")->name, "a");
  EXPECT_EQ(loaded_, "ba");
  EXPECT_EQ(on_shelf(), "ab");
}

TEST_F(ModelShelfTest, ASingleModelHasAnyNameOfSeveralNone) {
  offer({}, 1);
  EXPECT_EQ(borrow("gpt-4")->name, "a");
  offer({}, 2);
  try {
    ask("gpt-4");
    FAIL();
  } catch (const ApiError& error) {
    EXPECT_EQ(error.status(), 404);
    EXPECT_EQ(error.more["code"], "model_not_found");
  }
  EXPECT_THROW(shelf_->add({{.name = "a"}, {}}), ArgumentError);
}

TEST_F(ModelShelfTest, TheOneThatIsIdleForTheLongestTimeLeaves) {
  offer({.n_most = 2}, 3);
  borrow("a");
  borrow("b");
  borrow("a");
  borrow("c");
  EXPECT_EQ(on_shelf(), "ac");
  EXPECT_EQ(loaded_, "abc");
}

TEST_F(ModelShelfTest, StaysWithinItsMemory) {
  offer({.n_most = 0, .most_bytes = 25}, 4, 10);
  for (const char* name : {"a", "b", "c", "d"}) borrow(name);
  EXPECT_EQ(on_shelf(), "cd");
  offer({.n_most = 0, .most_bytes = 5}, 2, 10);  // each alone is too large: that is for it to say
  borrow("a");
  borrow("b");
  EXPECT_EQ(on_shelf(), "b");
}

// Whoever asks for a busy model that must leave waits behind the one for whom it leaves.
TEST_F(ModelShelfTest, ABusyModelEndsItsWorkAndLeaves) {
  offer({.n_most = 1}, 2);
  ModelShelf::Loan busy = borrow("a");
  std::future<Lent> other = ask("b");
  EXPECT_FALSE(is_there(other));
  std::future<Lent> again = ask("a");
  EXPECT_FALSE(is_there(again));
  EXPECT_EQ(busy->name, "a");
  busy.reset();
  EXPECT_EQ(other.get().loan->name, "b");
  EXPECT_EQ(again.get().loan->name, "a");
  EXPECT_EQ(loaded_, "aba");
}

TEST_F(ModelShelfTest, AModelThatCannotBeLoadedIsAnErrorForThoseWhoWait) {
  offer({}, 2);
  broken_ = "a";
  std::future<Lent> first, second;
  {
    const std::lock_guard gate(gate_);
    first = ask("a");
    second = ask("a");
  }
  EXPECT_THROW(std::rethrow_exception(first.get().error), ResourceError);
  EXPECT_TRUE(second.get().error);
  EXPECT_TRUE(shelf_->list()[0].has_failed);
  broken_.clear();
  EXPECT_EQ(borrow("a")->name, "a");
  EXPECT_FALSE(shelf_->list()[0].has_failed);
}

TEST_F(ModelShelfTest, TheQueueOfAModelHasABound) {
  offer({.n_waiting = 1}, 2);
  const std::lock_guard gate(gate_);
  const std::future<Lent> first = ask("a");
  EXPECT_THROW(ask("a"), QueueFullError);
  shelf_->forget(last_ticket_ - 1);  // the first one's
  ask("a");
}

TEST_F(ModelShelfTest, UnloadsWhatIsIdle) {
  offer({}, 2);
  EXPECT_THROW(shelf_->unload("a"), ApiError);
  ModelShelf::Loan loan = borrow("a");
  const std::shared_ptr<Metrics> metrics = loan->metrics;
  shelf_->unload("a");
  EXPECT_EQ(on_shelf(), "a");  // somebody uses it
  loan.reset();
  EXPECT_EQ(borrow("a")->metrics, metrics);  // what was counted stays
  EXPECT_EQ(loaded_, "aa");
  EXPECT_THROW(shelf_->lend("b", false, 0, {}), ApiError);
}

TEST_F(ModelShelfTest, WhatNobodyUsesGoesToSleep) {
  offer({.idle_time = std::chrono::milliseconds(20)}, 2);
  ModelShelf::Loan busy = borrow("a");
  const std::weak_ptr<Metrics> metrics = busy->metrics;
  const int64_t n_blocks = shelf_->look_at("a").usage.n_blocks;
  EXPECT_GT(n_blocks, 0);
  borrow("b");
  wait_for("b", ShelfState::kAsleep);
  EXPECT_EQ(shelf_->look_at("a").state, ShelfState::kLoaded);
  const auto adapters = busy->adapters;
  busy.reset();
  wait_for("a", ShelfState::kAsleep);
  const ModelShelf::Entry asleep = shelf_->look_at("a");
  EXPECT_EQ(asleep.usage.n_blocks, n_blocks);
  EXPECT_EQ(asleep.props->at("model_alias"), "a");
  EXPECT_EQ(asleep.metrics, metrics.lock());
  EXPECT_EQ(loaded_, "ab");

  // A request for one that sleeps need not be allowed to load it.
  std::promise<ModelShelf::Loan> woken;
  shelf_->lend("a", false, shelf_->new_ticket(),
               [&](const ModelShelf::Loan& loan, const auto&) { woken.set_value(loan); });
  EXPECT_EQ(woken.get_future().get()->adapters, adapters);
  EXPECT_EQ(loaded_, "aba");
}

// Asked without a pause while it goes to sleep and wakes: each request is answered, by the model.
TEST_F(ModelShelfTest, WhoComesWhileItFallsAsleepIsAnswered) {
  offer({.idle_time = std::chrono::milliseconds(1)}, 1);
  for (int i = 0; i < 200; ++i) {
    EXPECT_EQ(borrow("a")->name, "a");
    if (i % 3 > 0) std::this_thread::sleep_for(std::chrono::microseconds(i * 10));
  }
  EXPECT_GT(loaded_.size(), 1U);
}

TEST_F(ModelShelfTest, WhatSleepsCanBeUnloaded) {
  offer({.idle_time = std::chrono::milliseconds(1)}, 2);
  borrow("a");
  wait_for("a", ShelfState::kAsleep);
  shelf_->unload("a");
  EXPECT_EQ(shelf_->look_at("a").state, ShelfState::kUnloaded);
  EXPECT_EQ(shelf_->look_at("a").props, nullptr);
  EXPECT_EQ(shelf_->look_at("a").usage.n_blocks, 0);
  EXPECT_THROW(shelf_->lend("a", false, 0, {}), ApiError);
  EXPECT_EQ(borrow("a")->name, "a");
}

// The callbacks hold loans: they go with the model, on its own threads.
TEST_F(ModelShelfTest, EndsWhileRequestsRun) {
  offer({.n_most = 1}, 2);
  ModelShelf::Loan loan = borrow("a");
  GenerationOptions endless;
  endless.sampler.ignore_eos = true;
  endless.context_shift = true;
  GenerationRequest request;
  request.prompt = {1, 2, 3};
  request.choices = {endless};
  request.on_token = [](const TokenEvent&) {};
  request.on_end = [loan](const TokenEvent&, const GenerationResult&, const std::exception_ptr&) {};
  loan->service->submit(std::move(request));
  std::future<Lent> waiting = ask("b");
  loan.reset();
  EXPECT_FALSE(is_there(waiting));
  shelf_.reset();
  EXPECT_THROW(std::rethrow_exception(waiting.get().error), ApiError);
}

}  // namespace
}  // namespace limpid::testing
