#include "train/watch/live_run.h"

#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "limpid/error.hpp"

namespace limpid {
namespace {

using Json = nlohmann::json;

bool never() { return false; }

// A training on a thread of its own, whose snapshots are the numbers of its steps.
class Training {
 public:
  Training(LiveRun& run, int64_t n_steps)
      : thread_([this, &run, n_steps] {
          while (n_done < n_steps && !cancelled) {
            run.step([this] { return std::to_string(n_done.load()); },
                     [this] { return cancelled.load(); });
            ++n_done;
          }
          run.finish([this] { return std::to_string(n_done.load()); });
        }) {}
  ~Training() {
    cancelled = true;
    thread_.join();
  }
  std::atomic<int64_t> n_done = 0;
  std::atomic<bool> cancelled = false;

 private:
  std::thread thread_;
};

// Waits for the answer.
Json state_after(LiveRun& run, int64_t version) {
  auto promise = std::make_shared<std::promise<std::string>>();
  run.ask(version, [promise](const std::string& json) { promise->set_value(json); });
  return Json::parse(promise->get_future().get());
}

TEST(LiveRun, MakesNoSnapshotWhileNobodyAsks) {
  LiveRun run;
  int n_made = 0;
  const auto snapshot = [&] {
    ++n_made;
    return std::string("{}");
  };
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(run.step(snapshot, never));
  EXPECT_EQ(n_made, 0);
  EXPECT_FALSE(run.was_asked());
  std::string answer;
  run.ask(-1, [&](const std::string& json) { answer = json; });
  EXPECT_TRUE(run.step(snapshot, never));
  EXPECT_EQ(n_made, 1);
  EXPECT_EQ(Json::parse(answer).at("snapshot"), Json::object());
  run.step(snapshot, never);
  EXPECT_EQ(n_made, 1);
}

TEST(LiveRun, APausedRunGoesOnByTheStepsThatAreAskedFor) {
  LiveRun run;
  run.command(R"({"paused": true})");
  Training training(run, 1000);
  EXPECT_EQ(state_after(run, -1).at("snapshot"), 0);
  run.command(R"({"paused": true, "steps": 3})");
  Json state = state_after(run, -1);
  while (state.at("snapshot") != 3) state = state_after(run, state.at("version"));
  EXPECT_TRUE(state.at("paused"));
  std::this_thread::sleep_for(std::chrono::milliseconds(60));
  EXPECT_EQ(training.n_done, 3);
  run.command(R"({"paused": false})");
  while (state.at("finished") == false) state = state_after(run, state.at("version"));
  EXPECT_EQ(state.at("snapshot"), 1000);
}

TEST(LiveRun, TheSpeedIsLimitedWhileSomebodyLooks) {
  LiveRun run({.steps_per_second = 50});
  const auto begin = std::chrono::steady_clock::now();
  Training training(run, 1 << 30);
  Json state = state_after(run, -1);
  const int64_t first = state.at("snapshot");
  while (state.at("snapshot") < first + 10) state = state_after(run, state.at("version"));
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(150));
  EXPECT_LE(state.at("snapshot"), first + 12);
}

TEST(LiveRun, LaterQuestionsGetTheLastState) {
  LiveRun run({.learning_rate = 0.5});
  run.finish([] { return std::string("7"); });
  run.command(R"({"learning_rate": 0.25})");  // too late
  for (const int64_t version : {-1, 100}) {
    const Json state = state_after(run, version);
    EXPECT_EQ(state.at("snapshot"), 7);
    EXPECT_TRUE(state.at("finished"));
    EXPECT_EQ(state.at("learning_rate"), 0.5);
  }
}

TEST(LiveRun, CommandsAreRefusedWithAReason) {
  LiveRun run;
  const auto refused = [&](std::string_view json, std::string_view reason) {
    try {
      run.command(json);
      ADD_FAILURE() << json;
    } catch (const ArgumentError& error) {
      EXPECT_NE(std::string_view(error.what()).find(reason), std::string_view::npos)
          << error.what();
    }
  };
  refused("{", "the command");
  refused("[1]", "must be an object");
  refused(R"({"stop": 1})", "unknown command 'stop'");
  refused(R"({"paused": 1})", "paused: must be true or false");
  refused(R"({"learning_rate": "1"})", "learning_rate: must be a number");
  refused(R"({"learning_rate": 0})", "learning_rate: must be in");
  refused(R"({"paused": true, "steps_per_second": -1})", "steps_per_second: must be in");
  EXPECT_FALSE(run.control().paused);  // a command is obeyed as a whole or not at all
}

}  // namespace
}  // namespace limpid
