#include "server/generation_service.h"

#include <gtest/gtest.h>

#include <future>

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

}  // namespace
}  // namespace limpid::testing
