// Compiled into the program only, so that applications which link the library need no MPI.
#include "train/mpi_ranks.h"

#include <sched.h>

#include <algorithm>
#include <climits>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <deque>

#include "base/check.h"
#include "base/parse_number.h"
#include "base/system_limits.h"

#ifdef LIMPID_WITH_MPI
#define MPICH_SKIP_MPICXX 1  // the interface in C
#define OMPI_SKIP_MPICXX 1
#include <mpi.h>
#endif

namespace limpid {

int n_launched_processes() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}) {
    const char* const text = std::getenv(name);
    if (const auto n = parse_number<int>(text == nullptr ? "" : text)) return *n;
  }
  return 1;
}

#ifndef LIMPID_WITH_MPI

std::string mpi_version() { return ""; }

std::shared_ptr<Ranks> make_mpi_ranks() {
  throw UnsupportedError("this build cannot train with several processes: it has no MPI");
}

#else

namespace {

void check(int code, const char* what) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = {};
  int size = 0;
  MPI_Error_string(code, text, &size);
  throw ResourceError(fmt::format("{} failed between the processes of MPI: {}", what, text));
}

// The sum of the gradients of 2 ranks, for a tensor of 4 elements. Each rank owns one half of it:
//
//   rank 0 has a0 a1 a2 a3     start_scatter -> a0 a1, b0 b1     adds: s0 s1
//   rank 1 has b0 b1 b2 b3     start_scatter -> a2 a3, b2 b3     adds: s2 s3
//   start_gather               both have s0 s1 s2 s3
//
// MPI's own sum (MPI_Allreduce) sends about as much, but chooses the order of addition itself. Here
// the owner adds in order of the ranks, so the bits do not depend on the number of processes.
//
// A communicator for each kind of exchange: MPI matches collective calls of one communicator by
// their order, and a rank may start its gathers sooner or later than others do between its
// scatters.
class WorldRanks final : public Ranks {
 public:
  WorldRanks() {
    int provided = 0;
    check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided), "the start");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);  // copies inherit it
    for (MPI_Comm* copy : {&world_, &scatters_, &gathers_})
      check(MPI_Comm_dup(MPI_COMM_WORLD, copy), "the start");
    MPI_Comm machine = MPI_COMM_NULL;
    check(MPI_Comm_split_type(world_, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &machine),
          "the start");
    MPI_Comm_rank(world_, &rank_);
    MPI_Comm_size(world_, &size_);
    MPI_Comm_size(machine, &n_on_this_machine_);
    n_threads_ = threads_beside_others(machine);
    MPI_Comm_free(&machine);
    LIMPID_CHECK(ResourceError, size_ == n_launched_processes(),
                 "{} processes were started and MPI connects {}: the launcher is not that of {}",
                 n_launched_processes(), size_, mpi_version());
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  int n_on_this_machine() const override { return n_on_this_machine_; }
  int n_threads() const override { return n_threads_; }
  void finish() override { check(MPI_Finalize(), "the end"); }

  std::string broadcast(std::string text) override {
    uint64_t n = text.size();
    check(MPI_Bcast(&n, 1, MPI_UINT64_T, 0, world_), "a broadcast");
    text.resize(n);
    check(MPI_Bcast(text.data(), count_of(n), MPI_CHAR, 0, world_), "a broadcast");
    return text;
  }

  std::vector<double> gather(std::span<const double> values) override {
    std::vector<double> all(values.size() * static_cast<size_t>(size_));
    const int n = count_of(values.size());
    check(MPI_Allgather(values.data(), n, MPI_DOUBLE, all.data(), n, MPI_DOUBLE, world_),
          "a gather");
    return all;
  }

  int start_scatter(std::span<const float> values, std::span<float> received) override {
    const int ticket = begin(std::ssize(values));
    Exchange& exchange = exchange_of(ticket);
    check(MPI_Ialltoallv(values.data(), exchange.counts.data(), exchange.begins.data(), MPI_FLOAT,
                         received.data(), exchange.own_counts.data(), exchange.own_begins.data(),
                         MPI_FLOAT, scatters_, &exchange.request),
          "an exchange of gradients");
    return ticket;
  }

  int start_gather(std::span<float> values) override {
    const int ticket = begin(std::ssize(values));
    Exchange& exchange = exchange_of(ticket);
    check(MPI_Iallgatherv(MPI_IN_PLACE, 0, MPI_FLOAT, values.data(), exchange.counts.data(),
                          exchange.begins.data(), MPI_FLOAT, gathers_, &exchange.request),
          "an exchange of gradients");
    return ticket;
  }

  bool done(int ticket) override {
    int is_done = 0;
    check(MPI_Test(&exchange_of(ticket).request, &is_done, MPI_STATUS_IGNORE),
          "an exchange of gradients");
    return is_done != 0;
  }

  void wait(int ticket) override {
    check(MPI_Wait(&exchange_of(ticket).request, MPI_STATUS_IGNORE), "an exchange of gradients");
    exchange_of(ticket).is_free = true;
  }

 private:
  // An exchange that goes on: MPI reads the lists until it has ended.
  struct Exchange {
    MPI_Request request = MPI_REQUEST_NULL;
    std::vector<int> counts, begins;          // of the shares, by rank
    std::vector<int> own_counts, own_begins;  // of what this rank receives
    bool is_free = true;
  };

  Exchange& exchange_of(int ticket) { return exchanges_[static_cast<size_t>(ticket)]; }

  // mpirun may bind all ranks to the same cores or each to its own, so the cores that any of them
  // may use are divided by their number. On 2 sockets of 8 cores, with 4 ranks of which each is
  // bound to a socket, that is 16 / 4. A control group's share of time is of all ranks together.
  int threads_beside_others(MPI_Comm machine) const {
    int n_cores = usable_cores();
#ifdef __linux__
    cpu_set_t cores;
    CPU_ZERO(&cores);
    sched_getaffinity(0, sizeof(cores), &cores);  // fails with more cores than the set has places
    check(MPI_Allreduce(MPI_IN_PLACE, &cores, sizeof(cores), MPI_BYTE, MPI_BOR, machine),
          "the start");
    const double granted = std::ceil(granted_processors());
    if (CPU_COUNT(&cores) > 0) n_cores = CPU_COUNT(&cores);
    if (granted > 0) n_cores = std::min(n_cores, static_cast<int>(granted));
#endif
    return std::clamp(n_cores / n_on_this_machine_, 1, usable_cores());
  }

  static int count_of(uint64_t n) {
    LIMPID_CHECK(UnsupportedError, n <= INT_MAX,
                 "{} values are more than MPI exchanges at once (2^31 - 1)", n);
    return static_cast<int>(n);
  }

  // Lists the shares of a tensor. Returns the ticket.
  int begin(int64_t n_values) {
    count_of(static_cast<uint64_t>(n_values + size_));
    const auto is_free = [](const Exchange& exchange) { return exchange.is_free; };
    auto found = std::ranges::find_if(exchanges_, is_free);
    if (found == exchanges_.end()) found = exchanges_.insert(exchanges_.end(), Exchange());
    *found = Exchange();
    found->is_free = false;
    const auto own = static_cast<int>(share(n_values, rank_).n);
    for (int r = 0; r < size_; ++r) {
      const Share of_rank = share(n_values, r);
      found->counts.push_back(static_cast<int>(of_rank.n));
      found->begins.push_back(static_cast<int>(of_rank.begin));
      found->own_counts.push_back(own);
      found->own_begins.push_back(r * own);
    }
    return static_cast<int>(found - exchanges_.begin());
  }

  MPI_Comm world_ = MPI_COMM_NULL;
  MPI_Comm scatters_ = MPI_COMM_NULL;
  MPI_Comm gathers_ = MPI_COMM_NULL;
  int rank_ = 0;
  int size_ = 1;
  int n_on_this_machine_ = 1;
  int n_threads_ = 1;
  std::deque<Exchange> exchanges_;  // by ticket; addresses stay
};

}  // namespace

std::string mpi_version() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = {};
  int size = 0;
  MPI_Get_library_version(text, &size);
  return {text, text + std::strcspn(text, ",\n")};
}

std::shared_ptr<Ranks> make_mpi_ranks() { return std::make_shared<WorldRanks>(); }

#endif

}  // namespace limpid
