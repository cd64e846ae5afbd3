#include "base/system_limits.h"

#ifdef __GLIBC__
#include <malloc.h>
#endif
#if defined(__linux__)
#include <sched.h>
#endif

#include <algorithm>
#include <cmath>
#include <fstream>
#include <optional>
#include <string>
#include <thread>

namespace limpid {
namespace {

// Reads the number after `key` in a file of lines "key number", or the number at the beginning of
// the file if `key` is empty. Returns nothing if the key is missing or no number follows ("max").
std::optional<uint64_t> read_number(const std::string& path, const std::string& key = "") {
  std::ifstream file(path);
  std::string word;
  while (word != key && file >> word) {
    if (word != key) std::getline(file, word);  // the rest of a line with another key
  }
  uint64_t number = 0;
  return file >> number ? std::optional(number) : std::nullopt;
}

// The files of a control group. read_number ignores the limit "max", which means none.
struct GroupFiles {
  const char* most;
  const char* used;
  const char* statistics;
  const char* cached;  // a key of `statistics`
};
constexpr GroupFiles kGroups[] = {
    {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current", "/sys/fs/cgroup/memory.stat",
     "inactive_file"},  // version 2
    {"/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes",
     "/sys/fs/cgroup/memory/memory.stat", "total_inactive_file"},  // version 1
};

// What the control group of this container still allows.
std::optional<uint64_t> control_group_rest(const std::string& root) {
  for (const GroupFiles& group : kGroups) {
    const auto most = read_number(root + group.most);
    const auto used = read_number(root + group.used);
    if (!most || !used) continue;
    // The system reclaims cached file pages when memory is needed, so they count as free.
    const uint64_t cached = read_number(root + group.statistics, group.cached).value_or(0);
    const uint64_t held = *used > cached ? *used - cached : 0;
    return *most > held ? *most - held : 1;  // 0 would mean that it is unknown
  }
  return std::nullopt;
}

int bound_processors() {
#if defined(__linux__)
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof(set), &set) == 0) return std::max(1, CPU_COUNT(&set));
#endif
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

}  // namespace

uint64_t available_memory(const std::string& root) {
  constexpr uint64_t kKib = 1024;
  const auto system = read_number(root + "/proc/meminfo", "MemAvailable:");
  const auto group = control_group_rest(root);
  if (!system) return group.value_or(0);
  return group ? std::min(*system * kKib, *group) : *system * kKib;
}

uint64_t total_memory(const std::string& root) {
  constexpr uint64_t kKib = 1024;
  uint64_t total = read_number(root + "/proc/meminfo", "MemTotal:").value_or(0) * kKib;
  for (const GroupFiles& group : kGroups) {
    if (const auto limit = read_number(root + group.most))
      total = total == 0 ? *limit : std::min(total, *limit);
  }
  return total;
}

// The files have the microseconds of processor time that may be used in a period. Version 2 has
// both numbers in one file, "150000 100000", and "max" for no quota; version 1 has two files, and a
// quota of -1 then.
double granted_processors(const std::string& root) {
  int64_t quota = 0, period = 0;
  std::ifstream both(root + "/sys/fs/cgroup/cpu.max");
  std::ifstream quota_file(root + "/sys/fs/cgroup/cpu/cpu.cfs_quota_us");
  std::ifstream period_file(root + "/sys/fs/cgroup/cpu/cpu.cfs_period_us");
  const bool found = (both >> quota >> period) || (quota_file >> quota && period_file >> period);
  if (!found || quota <= 0 || period <= 0) return 0;
  return static_cast<double>(quota) / static_cast<double>(period);
}

int usable_cores(const std::string& root) {
  const int bound = bound_processors();
  const double granted = std::ceil(granted_processors(root));
  return granted > 0 && granted < bound ? static_cast<int>(granted) : bound;
}

void return_free_memory() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

}  // namespace limpid
