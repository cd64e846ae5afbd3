// What `limpid train` shows.
#include "cli/training_display.h"

#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/terminal_text.h"

namespace limpid::cli {
namespace {

RunReport report() {
  RunReport report;
  report.step = {250, 2.31, 1e-3, 0.5, 192'000};
  report.tokens_per_second = 41'000;
  return report;
}

TEST(PlanText, HasTheNumbers) {
  TrainingPlan plan;
  plan.weights = plan.gradients = 500'000'000;
  plan.moments = 1'000'000'000;
  plan.activations = 250'000'000;
  plan.available = 8'000'000'000;
  plan.n_parameters = plan.n_learning = 125'000'000;
  plan.n_tokens = 1'000'000;
  plan.tokens_per_step = 1000;
  plan.tokens_per_epoch = 1'000'000;
  plan.steps_per_epoch = 1000;
  plan.n_steps = 2500;
  plan.operations_per_step = 7.5e11;
  const std::string text = plan_text(plan, 1e11);
  for (const char* part :
       {"125,000,000 parameters", "2.25 GB: weights 500.0 MB", "8.00 GB available",
        "1,000 steps of 1,000 tokens", "2.50 epochs", "5 h 12 min or more"})
    EXPECT_NE(text.find(part), std::string::npos) << part << " in\n" << text;
  const Json json = plan_json(plan, 1e11);
  EXPECT_EQ(json["memory"]["total"], 2'250'000'000U);
  EXPECT_EQ(json["seconds_at_least"], 18'750);
  plan.n_done = 2000;  // a run that goes on
  EXPECT_NE(plan_text(plan, 1e11).find("2.50 epochs; 2,000 are done\ntime      1 h 02 min or more"),
            std::string::npos);
  EXPECT_EQ(plan_json(plan, 1e11)["seconds_at_least"], 3'750);
  plan.n_done = 0;
  plan.n_steps = std::numeric_limits<int64_t>::max();
  EXPECT_NE(plan_text(plan, 1e11).find("time      80063993"), std::string::npos);  // 8.0e14 days
}

TEST(StepNote, HasTheMostImportantFactsThatFit) {
  const TrainingPace pace{2000, 0.61, 200};
  EXPECT_EQ(step_note(report(), pace, 2.4, 80),
            "step 250, loss 2.3100, 3 min left, val 2.4000, 41000 tokens/s, 61% of f32");
  EXPECT_EQ(step_note(report(), pace, -1, 33), "step 250, loss 2.3100, 3 min left");
  EXPECT_EQ(step_note(report(), pace, -1, 32), "step 250, loss 2.3100");
  EXPECT_EQ(step_note(report(), pace, -1, 3), "");
}

TEST(StepLine, SaysWhatIsKnown) {
  EXPECT_EQ(step_line(report(), {2000, 0.61, 0}),
            "step 250 of 2000, loss 2.3100, lr 1.0e-03, 41000 tokens/s, 61% of f32");
  RunReport with_val = report();
  with_val.val_loss = 2.4;
  EXPECT_EQ(
      step_line(with_val, {2000, 0.61, 7300}),
      "step 250 of 2000, loss 2.3100, val 2.4000, lr 1.0e-03, 41000 tokens/s, 61% of f32, 2 h "
      "01 min left");
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

TEST(LossCurve, FallsFromTheUpperLeft) {
  std::vector<LogEntry> log;
  for (int64_t step = 0; step <= 100; ++step)
    log.push_back({step, 4.0 - 0.03 * static_cast<double>(step), 0, 0, 0, std::nullopt});
  log[100].val_loss = 1.5;
  const auto lines = lines_of(loss_curve(log, 50, false));
  ASSERT_EQ(lines.size(), 11U);
  EXPECT_EQ(lines[0].substr(0, 11), "  4.0000 |.");
  EXPECT_EQ(lines[9].substr(0, 10), "  1.0000 |");
  EXPECT_EQ(lines[9].back(), '.');
  EXPECT_EQ(lines[8].back(), 'o');  // the held-out loss
  EXPECT_NE(lines[10].find("step 0"), std::string::npos);
  EXPECT_TRUE(lines[10].ends_with(" 100"));
}

TEST(LossCurve, FitsInEveryTerminal) {
  std::vector<LogEntry> log;
  for (int64_t step = 0; step < 500; ++step)
    log.push_back({step, 10.0 / static_cast<double>(step + 1), 0, 0, 0, std::nullopt});
  for (size_t n_columns = 0; n_columns < 200; ++n_columns) {
    for (const bool braille : {false, true}) {
      const std::string curve = loss_curve(log, n_columns, braille);
      EXPECT_EQ(curve.empty(), n_columns < 30);
      for (const std::string& line : lines_of(curve)) EXPECT_LT(n_characters(line), n_columns);
    }
  }
  log.resize(1);
  EXPECT_EQ(loss_curve(log, 80, true), "");
}

}  // namespace
}  // namespace limpid::cli
