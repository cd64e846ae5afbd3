#include "train/watch/live_run.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "base/json_text.h"

namespace limpid {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::chrono::seconds kPatience{5};  // between two questions of a viewer
constexpr std::chrono::milliseconds kTick{20};
constexpr double kMostPerSecond = 1e6;
constexpr int64_t kMostSteps = 1'000'000;

double number(const std::string& name, const Json& value, double least, double most) {
  LIMPID_CHECK(ArgumentError, value.is_number(), "{}: must be a number", name);
  const double number = value.get<double>();
  LIMPID_CHECK(ArgumentError, number >= least && number <= most, "{}: must be in [{}, {}]", name,
               least, most);
  return number;
}

}  // namespace

void LiveRun::ask(int64_t version, Answer answer) {
  std::unique_lock lock(mutex_);
  was_asked_ = true;
  if (is_finished_) {
    is_fetched_ = true;
    const std::string json = state(last_snapshot_);
    lock.unlock();
    changed_.notify_all();
    return answer(json);
  }
  questions_.push_back({version, std::move(answer)});
  asked_at_ = Clock::now();
  is_busy_ = true;
  changed_.notify_all();
}

// All of a command is read before any of it takes effect, so a mistake in it changes nothing.
void LiveRun::command(std::string_view json) {
  const Json object = parse_json(json, "the command");
  LIMPID_CHECK(ArgumentError, object.is_object(), "the command: must be an object");
  const std::lock_guard lock(mutex_);
  Control control = control_;
  int64_t n_steps = 0;
  for (const auto& [name, value] : object.items()) {
    if (name == "paused") {
      LIMPID_CHECK(ArgumentError, value.is_boolean(), "paused: must be true or false");
      control.paused = value.get<bool>();
    } else if (name == "steps") {
      n_steps = static_cast<int64_t>(number(name, value, 1, kMostSteps));
    } else if (name == "steps_per_second") {
      control.steps_per_second = number(name, value, 0, kMostPerSecond);
    } else {
      LIMPID_CHECK(ArgumentError, name == "learning_rate",
                   "unknown command '{}'; the commands are paused, steps, steps_per_second and "
                   "learning_rate",
                   name);
      control.learning_rate = number(name, value, 1e-9, 10);
    }
  }
  if (is_finished_) return;  // the last state stays as it is
  control_ = control;
  n_steps_left_ = control.paused ? n_steps_left_ + n_steps : 0;
  last_snapshot_.clear();  // the learning rate may be in it
  ++version_;
  is_busy_ = true;
  changed_.notify_all();
}

LiveRun::Control LiveRun::control() const {
  const std::lock_guard lock(mutex_);
  return control_;
}

// A page asks again as soon as it has drawn an answer, so silence means that it was closed.
bool LiveRun::is_watched() const {
  return !questions_.empty() || Clock::now() < asked_at_ + kPatience;
}

// A step goes on when nobody looks, when its time has come, or when it is one of the steps that a
// paused run was asked for. Until then questions and commands wake the wait; the tick is for
// `cancelled`, which nobody announces.
bool LiveRun::attend(const Snapshot& snapshot, const std::function<bool()>& cancelled) {
  std::unique_lock lock(mutex_);
  ++version_;
  last_snapshot_.clear();
  while (!cancelled()) {
    answer_questions(lock, snapshot);
    if (control_.paused) {
      if (n_steps_left_ > 0) {
        --n_steps_left_;
        break;
      }
      changed_.wait_for(lock, kTick);
      continue;
    }
    if (!is_watched()) {
      is_busy_ = false;
      break;
    }
    const auto now = Clock::now();
    if (control_.steps_per_second == 0 || now >= next_step_) {
      const std::chrono::duration<double> each(1 / std::max(1e-3, control_.steps_per_second));
      next_step_ = now + std::chrono::duration_cast<Clock::duration>(each);
      break;
    }
    changed_.wait_until(lock, std::min(next_step_, now + kTick));
  }
  return true;
}

// The snapshot is made without the lock, so that questions and commands never wait for it.
void LiveRun::answer_questions(std::unique_lock<std::mutex>& lock, const Snapshot& snapshot) {
  const auto is_due = [this](const Question& each) { return each.version < version_; };
  if (std::ranges::none_of(questions_, is_due)) return;
  while (last_snapshot_.empty()) {
    const int64_t version = version_;
    lock.unlock();
    std::string made = snapshot();
    lock.lock();
    // If a command came meanwhile, the snapshot may have the old learning rate.
    if (version_ == version) last_snapshot_ = std::move(made);
  }
  std::vector<Question> due;
  std::erase_if(questions_, [&](Question& each) {
    if (!is_due(each)) return false;
    due.push_back(std::move(each));
    return true;
  });
  const std::string json = state(last_snapshot_);
  lock.unlock();
  for (const Question& each : due) each.answer(json);
  lock.lock();
}

void LiveRun::finish(const Snapshot& snapshot) {
  std::string last = snapshot();
  std::unique_lock lock(mutex_);
  ++version_;
  is_finished_ = true;
  last_snapshot_ = std::move(last);
  const bool somebody_looks = is_watched();
  is_fetched_ = !questions_.empty();
  for (Question& each : questions_) each.version = -1;
  answer_questions(lock, snapshot);
  if (somebody_looks) changed_.wait_for(lock, kPatience, [this] { return is_fetched_; });
}

// The snapshot is JSON already. It is put in the place of the null instead of being parsed and
// written again: the weights of a large network are a megabyte of it.
std::string LiveRun::state(const std::string& snapshot) const {
  const Json json{{"version", version_},
                  {"finished", is_finished_},
                  {"paused", control_.paused},
                  {"steps_per_second", control_.steps_per_second},
                  {"learning_rate", control_.learning_rate},
                  {"snapshot", nullptr}};
  const std::string text = json.dump();
  constexpr size_t kTail = std::string_view("null}").size();
  return text.substr(0, text.size() - kTail) + snapshot + "}";
}

}  // namespace limpid
