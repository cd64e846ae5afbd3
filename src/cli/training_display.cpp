// Three displays of one training: the plan before it starts, a line for each step while it runs,
// and the curve of the loss after it.
//
// "time … or more" is a lower bound: the operations of all steps over what the CPU can do with f32.
// A run that takes twice as long reaches half of the limit, shown as "50% of f32".
#include "cli/training_display.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace limpid::cli {
namespace {

constexpr int64_t kCurveRows = 10;

double seconds_at_least(const TrainingPlan& plan, double f32_limit) {
  return plan.operations_per_step * static_cast<double>(plan.n_steps - plan.n_done) / f32_limit;
}

double epochs(const TrainingPlan& plan) {
  return static_cast<double>(plan.n_steps) * static_cast<double>(plan.tokens_per_step) /
         static_cast<double>(plan.tokens_per_epoch);
}

// Only as exact as a forecast can be: seconds below a minute, minutes below two days, then days.
std::string duration(double seconds) {
  seconds = std::ceil(seconds);
  if (seconds >= 48 * 3600) return fmt::format("{:.0f} days", std::floor(seconds / 86400));
  const auto s = static_cast<int64_t>(seconds);
  return s >= 3600 ? fmt::format("{} h {:02} min", s / 3600, s / 60 % 60)
         : s >= 60 ? fmt::format("{} min", s / 60)
                   : fmt::format("{} s", s);
}

// A field of points in characters: 2 x 4 of braille, or 1 x 1.
class Field {
 public:
  Field(size_t n_columns, size_t n_rows, bool braille)
      : n_columns_(n_columns),
        wide_(braille ? 2 : 1),
        high_(braille ? 4 : 1),
        cells_(n_columns * n_rows) {}

  // x and y in [0, 1], y upwards.
  void dot(double x, double y) {
    const auto [column, row] = place(x, y);
    // Braille numbers its dots 1 2 3 7 in the left column and 4 5 6 8 in the right one.
    constexpr uint8_t kDots[2][4] = {{0x01, 0x02, 0x04, 0x40}, {0x08, 0x10, 0x20, 0x80}};
    cells_[row / high_ * n_columns_ + column / wide_] |= kDots[column % wide_][row % high_];
  }
  void mark(double x, double y) {
    const auto [column, row] = place(x, y);
    cells_[row / high_ * n_columns_ + column / wide_] |= kMark;
  }

  std::string row(size_t r) const {
    std::string text;
    for (const uint32_t cell : std::span(cells_).subspan(r * n_columns_, n_columns_)) {
      if (cell == 0 || cell >= kMark || high_ == 1) {
        text += cell == 0 ? ' ' : cell >= kMark ? 'o' : '.';
      } else {  // U+2800 + dots in UTF-8
        text +=
            {'\xE2', static_cast<char>(0xA0 | cell >> 6U), static_cast<char>(0x80 | (cell & 63U))};
      }
    }
    return text;
  }

 private:
  static constexpr uint32_t kMark = 0x100;

  std::pair<size_t, size_t> place(double x, double y) const {
    const auto at = [](double share, size_t n) {
      return std::min(n - 1, static_cast<size_t>(share * static_cast<double>(n)));
    };
    return {at(x, n_columns_ * wide_), at(1 - y, cells_.size() / n_columns_ * high_)};
  }

  size_t n_columns_;
  size_t wide_;  // points in a character
  size_t high_;
  std::vector<uint32_t> cells_;  // the dots of a braille character, and kMark
};

}  // namespace

// ---- before ------------------------------------------------------------------------------------

std::string plan_text(const TrainingPlan& plan, double f32_limit) {
  std::string text = fmt::format(
      "model     {} parameters, of which {} learn\n"
      "memory    {}: weights {}, gradients {}, moments {}, activations {}, data {}",
      fmt::group_digits(plan.n_parameters), fmt::group_digits(plan.n_learning),
      format_bytes(plan.total()), format_bytes(plan.weights), format_bytes(plan.gradients),
      format_bytes(plan.moments), format_bytes(plan.activations), format_bytes(plan.data));
  if (plan.n_processes > 1) text += fmt::format("; in each of {} processes", plan.n_processes);
  if (plan.available > 0) text += fmt::format("; {} available", format_bytes(plan.available));
  return text +
         fmt::format(
             "\ndata      {} tokens, and {} held out; an epoch is {} step{} of {} tokens\n"
             "steps     {}, which are {:.2f} epochs{}\n"
             "time      {} or more: {:.2e} operations a step at no more than {:.0f} GFLOP/s\n",
             fmt::group_digits(plan.n_tokens), fmt::group_digits(plan.n_held_out),
             fmt::group_digits(plan.steps_per_epoch), plan.steps_per_epoch == 1 ? "" : "s",
             fmt::group_digits(plan.tokens_per_step), fmt::group_digits(plan.n_steps), epochs(plan),
             plan.n_done > 0 ? fmt::format("; {} are done", fmt::group_digits(plan.n_done)) : "",
             duration(seconds_at_least(plan, f32_limit)), plan.operations_per_step,
             f32_limit / 1e9);
}

Json plan_json(const TrainingPlan& plan, double f32_limit) {
  return {{"parameters", plan.n_parameters},
          {"learning", plan.n_learning},
          {"memory",
           {{"total", plan.total()},
            {"weights", plan.weights},
            {"gradients", plan.gradients},
            {"moments", plan.moments},
            {"activations", plan.activations},
            {"data", plan.data},
            {"processes", plan.n_processes},
            {"available", plan.available}}},
          {"tokens", plan.n_tokens},
          {"held_out_tokens", plan.n_held_out},
          {"tokens_per_step", plan.tokens_per_step},
          {"steps_per_epoch", plan.steps_per_epoch},
          {"steps", plan.n_steps},
          {"steps_done", plan.n_done},
          {"operations_per_step", plan.operations_per_step},
          {"f32_flops_per_second", f32_limit},
          {"seconds_at_least", seconds_at_least(plan, f32_limit)}};
}

// ---- while it runs -----------------------------------------------------------------------------

std::string step_line(const RunReport& report, const TrainingPace& pace) {
  std::string line =
      fmt::format("step {} of {}, loss {:.4f}", report.step.step, pace.n_steps, report.step.loss);
  if (report.val_loss) line += fmt::format(", val {:.4f}", *report.val_loss);
  line += fmt::format(", lr {:.1e}, {:.0f} tokens/s, {:.0f}% of f32", report.step.lr,
                      report.tokens_per_second, 100 * pace.share_of_limit);
  if (pace.seconds_left > 0) line += fmt::format(", {} left", duration(pace.seconds_left));
  return line;
}

std::string step_note(const RunReport& report, const TrainingPace& pace, double val_loss,
                      size_t n_columns) {
  std::vector<std::string> facts = {fmt::format("step {}", report.step.step),
                                    fmt::format("loss {:.4f}", report.step.loss)};
  if (pace.seconds_left > 0) facts.push_back(duration(pace.seconds_left) + " left");
  if (val_loss >= 0) facts.push_back(fmt::format("val {:.4f}", val_loss));
  facts.push_back(fmt::format("{:.0f} tokens/s", report.tokens_per_second));
  facts.push_back(fmt::format("{:.0f}% of f32", 100 * pace.share_of_limit));
  std::string note;
  for (const std::string& fact : facts) {
    const std::string_view comma = note.empty() ? "" : ", ";
    if (note.size() + comma.size() + fact.size() > n_columns) break;
    note.append(comma).append(fact);
  }
  return note;
}

// ---- after -------------------------------------------------------------------------------------

// 4.21 |o
//      |.
//      | o..
// 2.35 |    ...o
//       0       100
std::string loss_curve(const std::vector<LogEntry>& log, size_t n_columns, bool braille) {
  constexpr size_t kLabel = 8;
  constexpr size_t kFewestColumns = 30;
  constexpr size_t kMostColumns = 80;
  if (log.size() < 2 || n_columns < kFewestColumns) return {};
  double low = log[0].loss;
  double high = low;
  for (const LogEntry& entry : log) {
    const double held_out = entry.val_loss.value_or(entry.loss);
    low = std::min({low, entry.loss, held_out});
    high = std::max({high, entry.loss, held_out});
  }
  const size_t width = std::min(n_columns - 1, kMostColumns) - kLabel - 2;
  Field field(width, kCurveRows, braille);
  const double first = static_cast<double>(log.front().step);
  const double n = std::max(1.0, static_cast<double>(log.back().step) - first);
  const auto y_of = [&](double loss) { return high > low ? (loss - low) / (high - low) : 0.5; };
  for (const LogEntry& entry : log) {
    const double x = (static_cast<double>(entry.step) - first) / n;
    field.dot(x, y_of(entry.loss));
    if (entry.val_loss) field.mark(x, y_of(*entry.val_loss));
  }
  std::string text;
  for (int64_t r = 0; r < kCurveRows; ++r) {
    const bool labelled = r == 0 || r + 1 == kCurveRows;
    text += fmt::format("{:>{}} |{}\n", labelled ? fmt::format("{:.4f}", r == 0 ? high : low) : "",
                        kLabel, field.row(static_cast<size_t>(r)));
  }
  const std::string begin = fmt::format("step {}", log.front().step);
  return text + fmt::format("{:>{}} {}{:>{}}\n", "", kLabel, begin, log.back().step,
                            width + 1 - begin.size());
}

}  // namespace limpid::cli
