// The facts that `limpid doctor` collects, and its findings from them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/machine.h"
#include "cli/output_path.h"

namespace limpid::cli {

struct Build {
  std::string compiler;  // "GCC 12.2.0"
  bool is_optimised = true;
  bool is_sanitised = false;
  std::string mpi;  // "Open MPI v4.1.4"; "": it cannot train with several processes
};

struct CacheState {
  struct Entry {
    std::string name;  // a folder in the cache
    FolderSize size;
  };
  std::string path;
  std::string problem;  // why nothing can be written to it, or ""
  uint64_t free_bytes = 0;
  std::vector<Entry> entries;  // by name; files that lie in no folder come last, as one
};

// The model that `limpid pull` and `make chat` begin with: the first of kNamedModels.
struct FirstModel {
  std::string path;
  std::string state = "absent";  // or "verified", "damaged"
};

struct Checkup {
  Build build;
  Machine machine;
  std::string governor;     // of the first core's clock; "": not to be seen
  bool has_nvidia = false;  // the system shows a GPU of NVIDIA
  double cpu_quota = 0;     // granted_processors
  MachineLimits limits;     // n_threads is 0 where they were not measured
  CacheState cache;
  FirstModel model;
};

// Collects the facts. With `measure` also measures the limits of the machine, unless it has too
// little memory for that.
Checkup check_up(bool measure);

struct Finding {
  bool is_problem;   // something does not work; otherwise it works, and could be better
  std::string text;  // what, and what to do
};

// The findings, problems first.
std::vector<Finding> judge(const Checkup& checkup);

}  // namespace limpid::cli
