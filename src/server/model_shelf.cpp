// The shelf's own thread makes all changes, one at a time. Other threads only ask for them.
//
//                 lend()                load()                take_away()
//   kUnloaded  ----------> a waiter  ----------> kLoaded  ----------------> kUnloaded or kAsleep
//
// Loading a model takes seconds, and so does ending one that still runs. The mutex is free during
// both. Everything that a thread has read under the mutex before may have changed after, so
// step() decides anew each time and does one thing.
#include "server/model_shelf.h"

#include <algorithm>
#include <new>
#include <utility>

#include "base/check.h"
#include "base/system_limits.h"

namespace limpid {
namespace {

ApiError unknown_model(std::string_view name) {
  ApiError error(404, "the model '" + std::string(name) + "' does not exist", "model",
                 "invalid_request_error");
  error.more = {{"code", "model_not_found"}};
  return error;
}

ApiError not_loaded(const std::string& name) {
  return {400, "the model '" + name + "' is not loaded", "model"};
}

// Why loading failed, as clients may know it. The messages are about files of the server, and no
// request is to blame for them. A lack of memory may pass, and keeps its kind.
std::exception_ptr load_failure(const std::string& name) {
  try {
    throw;
  } catch (const ResourceError&) {
    return std::current_exception();
  } catch (const std::bad_alloc&) {
    return std::current_exception();
  } catch (...) {
    return std::make_exception_ptr(ApiError(500, "the model '" + name + "' cannot be loaded"));
  }
}

}  // namespace

ModelShelf::ModelShelf(const ShelfLimits& limits) : limits_(limits) {
  thread_ = std::thread([this] { work(); });
}

// The callbacks of a request may be destroyed with its model, and give loans back while they are:
// so the models go first, while the places are still there.
ModelShelf::~ModelShelf() {
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
  }
  changed_.notify_one();
  thread_.join();
  const auto error =
      std::make_exception_ptr(ApiError(503, "the server ended before the model was loaded"));
  for (Place& place : places_) {
    for (const Waiter& waiter : place.waiters) waiter.receive(nullptr, error);
    place.model.reset();
  }
}

void ModelShelf::add(ShelvedModel model) {
  const std::lock_guard lock(mutex_);
  const std::string& name = model.card.name;
  for (const Place& place : places_) {
    LIMPID_CHECK(ArgumentError, place.card.name != name, "{} and {} are both called {}",
                 place.card.path, model.card.path, name);
  }
  Place& place = places_.emplace_back();
  place.card = std::move(model.card);
  place.make = std::move(model.load);
}

size_t ModelShelf::size() const {
  const std::lock_guard lock(mutex_);
  return places_.size();
}

ModelShelf::Place& ModelShelf::find(std::string_view asked) {
  if (places_.empty()) throw ApiError(503, "no model is loaded");
  if (places_.size() == 1 || asked.empty()) return places_.front();
  for (Place& place : places_) {
    if (place.card.name == asked) return place;
  }
  throw unknown_model(asked);
}

void ModelShelf::lend(std::string_view asked, bool may_load, Ticket ticket, Receiver receive) {
  Loan loan;
  {
    const std::lock_guard lock(mutex_);
    Place& place = find(asked);
    const bool is_here = place.state == ShelfState::kLoaded && !place.is_leaving;
    if (!is_here) {
      const std::string& name = place.card.name;
      const bool comes = place.state == ShelfState::kLoading || place.state == ShelfState::kAsleep;
      if (!may_load && !comes) throw not_loaded(name);
      LIMPID_CHECK(QueueFullError, std::ssize(place.waiters) < limits_.n_waiting,
                   "{} requests wait for {}", place.waiters.size(), name);
      place.waiters.push_back({ticket, std::move(receive)});
      changed_.notify_one();
      return;
    }
    place.last_used = ++clock_;
    loan = loan_of(place);
  }
  receive(std::move(loan), nullptr);
}

void ModelShelf::forget(Ticket ticket) {
  Receiver forgotten;  // destroyed when the mutex is free
  const std::lock_guard lock(mutex_);
  for (Place& place : places_) {
    const auto found = std::ranges::find(place.waiters, ticket, &Waiter::ticket);
    if (found == place.waiters.end()) continue;
    forgotten = std::move(found->receive);
    place.waiters.erase(found);
  }
}

void ModelShelf::unload(std::string_view asked) {
  const std::lock_guard lock(mutex_);
  Place& place = find(asked);
  if (place.state == ShelfState::kAsleep) {
    place.state = ShelfState::kUnloaded;
    place.props = nullptr;
    return;
  }
  if (place.state != ShelfState::kLoaded) throw not_loaded(place.card.name);
  place.is_leaving = true;
  changed_.notify_one();
}

// Each time that a model is loaded, its scheduler counts from 0.
Scheduler::Usage ModelShelf::usage_of(const Place& place) {
  if (place.state == ShelfState::kAsleep) return place.usage;
  Scheduler::Usage usage{};
  if (place.model) usage = place.model->service->usage();
  usage.n_preempted += place.usage.n_preempted;
  usage.n_passes += place.usage.n_passes;
  usage.n_in_passes += place.usage.n_in_passes;
  return usage;
}

ModelShelf::Entry ModelShelf::entry_of(const Place& place) {
  Entry entry = place;
  entry.usage = usage_of(place);
  return entry;
}

ModelShelf::Entry ModelShelf::look_at(std::string_view asked) {
  const std::lock_guard lock(mutex_);
  return entry_of(find(asked));
}

std::vector<ModelShelf::Entry> ModelShelf::list() {
  const std::lock_guard lock(mutex_);
  std::vector<Entry> entries;
  for (const Place& place : places_) entries.push_back(entry_of(place));
  return entries;
}

// ---- loans --------------------------------------------------------------------------------------

// A shared pointer that does not own the model: its end only counts. The model itself is destroyed
// by the shelf's thread, because the last copy of a loan often ends on the engine's own thread,
// which the model's end waits for.
ModelShelf::Loan ModelShelf::loan_of(Place& place) {
  ++place.n_loans;
  return {place.model.get(), [this, &place](const ServedModel*) { give_back(place); }};
}

void ModelShelf::give_back(Place& place) {
  const std::lock_guard lock(mutex_);
  if (--place.n_loans > 0) return;
  place.idle_since = Clock::now();
  changed_.notify_one();
}

// ---- the shelf's thread -------------------------------------------------------------------------

void ModelShelf::work() {
  std::unique_lock lock(mutex_);
  while (!is_ending_) {
    if (!step(lock)) wait(lock);
  }
}

// Until something changes, or the next model goes to sleep.
void ModelShelf::wait(std::unique_lock<std::mutex>& lock) {
  auto next = Clock::time_point::max();
  for (const Place& place : places_) {
    if (can_sleep(place)) next = std::min(next, place.idle_since + limits_.idle_time);
  }
  next == Clock::time_point::max() ? changed_.wait(lock) : (void)changed_.wait_until(lock, next);
}

bool ModelShelf::can_sleep(const Place& place) const {
  return limits_.idle_time.count() > 0 && place.state == ShelfState::kLoaded && place.n_loans == 0;
}

// One thing that can be done now. Gives false when there is nothing to do but wait.
bool ModelShelf::step(std::unique_lock<std::mutex>& lock) {
  for (Place& place : places_) {
    if (place.is_leaving && place.n_loans == 0) {
      take_away(place, ShelfState::kUnloaded, lock);
      return true;
    }
    if (can_sleep(place) && Clock::now() >= place.idle_since + limits_.idle_time) {
      take_away(place, ShelfState::kAsleep, lock);
      return true;
    }
  }
  Place* const wanted = next_to_load();
  if (wanted == nullptr) return false;
  if (has_room_for(*wanted)) {
    load(*wanted, lock);
    return true;
  }
  const bool one_leaves = std::ranges::any_of(places_, &Place::is_leaving);
  Place* const leaving = one_leaves ? nullptr : next_to_leave();
  if (leaving == nullptr) return false;  // one leaves already: its last request is waited for
  leaving->is_leaving = true;
  return true;
}

// The one whose first request has waited for the longest time.
ModelShelf::Place* ModelShelf::next_to_load() {
  Place* next = nullptr;
  for (Place& place : places_) {
    if (place.waiters.empty() || place.state == ShelfState::kLoaded) continue;
    if (next == nullptr || place.waiters.front().ticket < next->waiters.front().ticket)
      next = &place;
  }
  return next;
}

// Idle ones before busy ones, and among these the one that was asked for the longest time ago.
ModelShelf::Place* ModelShelf::next_to_leave() {
  const auto order = [](const Place& place) {
    return std::pair(place.n_loans > 0, place.last_used);
  };
  Place* next = nullptr;
  for (Place& place : places_) {
    if (place.state != ShelfState::kLoaded) continue;
    if (next == nullptr || order(place) < order(*next)) next = &place;
  }
  return next;
}

// A model that is larger than the budget is loaded alone. Its own checks decide whether it fits.
bool ModelShelf::has_room_for(const Place& wanted) const {
  int64_t n_loaded = 0;
  uint64_t n_bytes = wanted.card.n_bytes;
  for (const Place& place : places_) {
    if (place.state != ShelfState::kLoaded) continue;
    ++n_loaded;
    n_bytes += place.card.n_bytes;
  }
  const bool fits_number = limits_.n_most == 0 || n_loaded < limits_.n_most;
  const bool fits_memory = limits_.most_bytes == 0 || n_bytes <= limits_.most_bytes;
  return n_loaded == 0 || (fits_number && fits_memory);
}

void ModelShelf::load(Place& place, std::unique_lock<std::mutex>& lock) {
  place.state = ShelfState::kLoading;
  lock.unlock();
  std::unique_ptr<ServedModel> model;
  std::shared_ptr<const Json> props;
  std::exception_ptr error;
  try {
    model = place.make();
    model->metrics = place.metrics;
    if (place.adapters) model->adapters = place.adapters;
    props = std::make_shared<const Json>(model_props(*model));
  } catch (...) {
    error = load_failure(place.card.name);
  }
  lock.lock();
  place.has_failed = error != nullptr;
  place.state = error ? ShelfState::kUnloaded : ShelfState::kLoaded;
  place.model = std::move(model);
  place.props = std::move(props);
  if (place.model) place.adapters = place.model->adapters;
  place.last_used = ++clock_;
  {  // the copies of the loan end while the mutex is free: give_back() takes it
    const std::deque<Waiter> waiters = std::exchange(place.waiters, {});
    const Loan loan = error ? nullptr : loan_of(place);
    lock.unlock();
    for (const Waiter& waiter : waiters) waiter.receive(loan, error);
  }
  lock.lock();
}

// Requests for the model wait meanwhile, because this thread also loads the models.
void ModelShelf::take_away(Place& place, ShelfState next, std::unique_lock<std::mutex>& lock) {
  place.usage = usage_of(place);
  place.is_leaving = false;
  place.state = next;
  if (next == ShelfState::kUnloaded) place.props = nullptr;
  std::unique_ptr<ServedModel> model = std::move(place.model);
  lock.unlock();
  model.reset();  // waits for the engine's thread
  return_free_memory();
  lock.lock();
}

}  // namespace limpid
