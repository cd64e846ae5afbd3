// The models that a server offers. A request borrows one by its name. A model that is not loaded is
// loaded then, on the shelf's own thread, while the loaded ones go on answering; a model that
// nobody uses makes room for it, least recently used first.
//
//   at most two loaded: a, b   request for c:   a leaves   c is loaded   c answers
//                              request for a:   waits until b has ended its answers and has left
//
// A busy model leaves too when no idle one can: it ends what it runs, and who asks for it meanwhile
// waits until it is loaded again. Otherwise one user could keep all others from their model
// forever.
//
// With ShelfLimits::idle_time a model that nobody has used for so long goes to sleep: its memory is
// given back, what clients ask about it is still known, and the next request loads it again.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "server/metrics.h"
#include "server/served_model.h"

namespace limpid {

// What a model's header tells, so that the list of models needs no weights.
struct ModelCard {
  std::string name{};  // what clients call it
  std::vector<std::string> aliases{}, tags{};
  std::string path{};
  std::string format{};  // "gguf v3"
  std::string architecture{};
  std::string chat_template{};  // the one that its chats use
  int64_t vocab_size = 0;
  int64_t d_model = 0;
  int64_t n_ctx_train = 0;
  uint64_t n_file_bytes = 0;  // of its tensors
  uint64_t n_bytes = 0;       // of memory that it takes when it is loaded
  uint64_t n_available = 0;   // of its devices together, before that; 0: unknown
};

struct ShelvedModel {
  ModelCard card;
  // Called on the shelf's thread, once for each time that it is loaded. May throw.
  std::function<std::unique_ptr<ServedModel>()> load;
};

struct ShelfLimits {
  int64_t n_most = 4;       // models that are loaded at a time; 0: all
  uint64_t most_bytes = 0;  // of ModelCard::n_bytes of the loaded ones together; 0: any
  int64_t n_waiting = 256;  // most requests that wait for one model to be loaded
  // A model that nobody has used for so long goes to sleep; 0: never.
  std::chrono::milliseconds idle_time{0};
};

enum class ShelfState : uint8_t { kUnloaded, kLoading, kLoaded, kAsleep };

// All methods may be called from any thread, and none waits for a model.
class ModelShelf {
 public:
  // Keeps a model loaded as long as a copy exists.
  using Loan = std::shared_ptr<const ServedModel>;
  // Called once: with the model, or with what went wrong.
  using Receiver = std::function<void(Loan loan, const std::exception_ptr& error)>;
  using Ticket = uint64_t;

  explicit ModelShelf(const ShelfLimits& limits);
  // Requests that run are cancelled; those that wait are refused with 503.
  ~ModelShelf();

  // Throws ArgumentError for a name that is there already.
  void add(ShelvedModel model);
  size_t size() const;

  // `receive` gets the model that is called `asked`: at once if it is loaded, otherwise on the
  // shelf's thread when it is. A single model answers to any name; of several, "" is the first.
  // Throws ApiError: 404 (model_not_found) for an unknown name, 503 for an empty shelf, and without
  // `may_load` 400 for a model that is not loaded and does not sleep; and QueueFullError.
  void lend(std::string_view asked, bool may_load, Ticket ticket, Receiver receive);
  // Takes a request back that waits: its receiver is not called. Any other ticket has no effect.
  void forget(Ticket ticket);
  Ticket new_ticket() { return ++last_ticket_; }
  // Unloads the model when its last request has ended. Throws ApiError: 404 as above, and 400 for a
  // model that is not loaded.
  void unload(std::string_view asked);

  struct Entry {
    ModelCard card{};
    ShelfState state = ShelfState::kUnloaded;
    bool has_failed = false;  // the last time that it was to be loaded
    std::shared_ptr<Metrics> metrics = std::make_shared<Metrics>();  // never null
    std::shared_ptr<const Json> props{};  // model_props(), while it is loaded and while it sleeps
    Scheduler::Usage usage{};             // of a model that sleeps: before that
  };
  // In the order in which they were added. Looking at a model is not a use of it: it changes
  // neither the order in which models leave nor the time at which one goes to sleep.
  std::vector<Entry> list();
  // The one that is called `asked`. Throws as lend().
  Entry look_at(std::string_view asked);

 private:
  struct Waiter {
    Ticket ticket;
    Receiver receive;
  };
  using Clock = std::chrono::steady_clock;
  // `usage` is that of the time before the model left; its counters go on when it comes again. The
  // metrics and the adapters stay when it leaves.
  struct Place : Entry {
    std::function<std::unique_ptr<ServedModel>()> make{};  // ShelvedModel::load
    std::shared_ptr<ServedAdapters> adapters{};            // null before it was loaded first
    std::unique_ptr<ServedModel> model{};                  // while it is loaded
    bool is_leaving = false;                               // no longer lent
    int64_t n_loans = 0;
    uint64_t last_used = 0;  // ticks of clock_
    Clock::time_point idle_since{};
    std::deque<Waiter> waiters{};
  };

  void work();
  bool step(std::unique_lock<std::mutex>& lock);
  void load(Place& place, std::unique_lock<std::mutex>& lock);
  void take_away(Place& place, ShelfState next, std::unique_lock<std::mutex>& lock);
  void wait(std::unique_lock<std::mutex>& lock);
  bool can_sleep(const Place& place) const;
  static Scheduler::Usage usage_of(const Place& place);
  static Entry entry_of(const Place& place);
  Place* next_to_load();
  Place* next_to_leave();
  bool has_room_for(const Place& wanted) const;
  Place& find(std::string_view asked);
  Loan loan_of(Place& place);
  void give_back(Place& place);

  const ShelfLimits limits_;
  std::atomic<Ticket> last_ticket_ = 0;
  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::list<Place> places_;  // never moved: loans point to them
  uint64_t clock_ = 0;
  bool is_ending_ = false;
  std::thread thread_;
};

}  // namespace limpid
