#include "server/generation_service.h"

#include <gtest/gtest.h>

#include <future>
#include <new>

#include "generate/tiny_model.h"

namespace limpid::testing {
namespace {

// Runs a request to its end. Returns the slot that it had, or -1.
int64_t run(GenerationService& service, std::string_view prompt, const GenerationOptions& options) {
  const auto ended = std::make_shared<std::promise<void>>();
  int64_t slot = -2;
  GenerationRequest request;
  for (const char c : prompt) request.prompt.push_back(static_cast<unsigned char>(c));
  request.choices = {options};
  request.on_start = [&slot](int64_t taken) { slot = taken; };
  request.on_token = [](const TokenEvent&) {};
  request.on_end = [ended](const TokenEvent&, const GenerationResult&, const std::exception_ptr&) {
    ended->set_value();
  };
  service.submit(std::move(request));
  ended->get_future().wait();
  return slot;
}

TEST(GenerationService, ARequestThatNeverRanLeavesTheTextOfASlot) {
  GenerationService service(open_tiny(), {.n_parallel = 1});
  EXPECT_EQ(run(service, "hello", saying("hi")), 0);
  EXPECT_EQ(service.slots()[0].n_tokens, 7);
  const GenerationOptions gone = saying("no");
  gone.cancel.cancel();
  EXPECT_EQ(run(service, "another text", gone), -1);
  EXPECT_EQ(service.slots()[0].n_tokens, 7);
  EXPECT_FALSE(service.slots()[0].is_running);
}

// Neither its begin nor its end can be told to anyone.
TEST(GenerationService, ARequestWithoutMemoryEndsAlone) {
  GenerationService service(open_tiny(), {.n_parallel = 1});
  std::promise<std::exception_ptr> told;
  GenerationRequest request;
  request.prompt = {'a'};
  request.choices = {saying("hi")};
  request.on_start = [](int64_t) { throw std::bad_alloc(); };
  request.on_token = [](const TokenEvent&) {};
  request.on_end = [&](const TokenEvent&, const GenerationResult&,
                       const std::exception_ptr& error) {
    told.set_value(error);
    throw std::bad_alloc();
  };
  service.submit(std::move(request));
  EXPECT_THROW(std::rethrow_exception(told.get_future().get()), std::bad_alloc);
  EXPECT_EQ(run(service, "hello", saying("hi")), 0);
}

// A sampler that counts how many sequences have one.
class CountedSampler final : public Sampler {
 public:
  explicit CountedSampler(std::shared_ptr<int> n_living) : n_living_(std::move(n_living)) {
    ++*n_living_;
  }
  ~CountedSampler() override { --*n_living_; }
  std::shared_ptr<Sampler> clone() const override {
    return std::make_shared<CountedSampler>(n_living_);
  }
  std::string_view name() const override { return "counted"; }
  void apply(Candidates& /*candidates*/, const SamplerContext& /*context*/) override {}

 private:
  std::shared_ptr<int> n_living_;
};

TEST(GenerationService, AChoiceThatHasEndedKeepsNothing) {
  const auto n_living = std::make_shared<int>(0);
  std::vector<int> n_at_ends;
  std::promise<void> ended;
  GenerationRequest request;
  request.prompt = {'a'};
  GenerationOptions options = saying("hi");
  options.sampler.custom.push_back(std::make_shared<CountedSampler>(n_living));
  request.choices = {options, options, options};
  request.on_token = [](const TokenEvent&) {};
  request.on_end = [&](const TokenEvent&, const GenerationResult&, const std::exception_ptr&) {
    n_at_ends.push_back(*n_living);
    if (n_at_ends.size() == 3) ended.set_value();
  };
  GenerationService service(open_tiny(), {.n_parallel = 1});
  service.submit(std::move(request));
  ended.get_future().wait();
  EXPECT_EQ(n_at_ends, (std::vector{4, 3, 2}));  // one of them is that of the options
}

}  // namespace
}  // namespace limpid::testing
