#include "base/system_limits.h"

#ifdef __GLIBC__
#include <malloc.h>
#endif
#if defined(__linux__)
#include <sched.h>
#endif
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace limpid {
namespace {

constexpr uint64_t kKib = 1024;  // the unit of /proc/meminfo and of sizes of caches

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

// The folders of this process's control groups, from its own to the outermost that can be seen: a
// service has one of its own, and a container sees its own as the outermost. The limits of all of
// them apply. `controller` is that of version 1, whose groups are in folders of its name; "" is
// version 2.
//   /proc/self/cgroup   0::/system.slice/limpid.service
//   folders             /sys/fs/cgroup/system.slice/limpid.service, /sys/fs/cgroup/system.slice,
//                       /sys/fs/cgroup
std::vector<std::string> group_folders(const std::string& root, std::string_view controller) {
  std::string path;
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {  // number:controllers:path
    const size_t begin = std::min(line.find(':'), line.size() - 1) + 1;
    const size_t end = line.find(':', begin);
    if (end == line.npos) continue;
    const std::string controllers = "," + line.substr(begin, end - begin) + ",";
    if (controllers.find(fmt::format(",{},", controller)) == controllers.npos) continue;
    if (line.substr(end + 1).starts_with('/')) path = line.substr(end + 1);
  }
  const std::string top =
      fmt::format("{}/sys/fs/cgroup{}{}", root, controller.empty() ? "" : "/", controller);
  std::vector<std::string> folders;
  for (; path.size() > 1; path.resize(path.rfind('/'))) folders.push_back(top + path);
  folders.push_back(top);
  return folders;
}

// The files of a control group. read_number ignores the limit "max", which means none.
struct GroupFiles {
  const char* controller;
  const char* most;
  const char* used;
  const char* cached;  // a key of memory.stat
};
constexpr GroupFiles kGroups[] = {
    {"", "/memory.max", "/memory.current", "inactive_file"},  // version 2
    {"memory", "/memory.limit_in_bytes", "/memory.usage_in_bytes",
     "total_inactive_file"},  // version 1
};

// What the control groups still allow.
std::optional<uint64_t> control_group_rest(const std::string& root) {
  std::optional<uint64_t> rest;
  for (const GroupFiles& group : kGroups) {
    for (const std::string& folder : group_folders(root, group.controller)) {
      const auto most = read_number(folder + group.most);
      const auto used = read_number(folder + group.used);
      if (!most || !used) continue;
      // The system reclaims cached file pages when memory is needed, so they count as free.
      const uint64_t cached = read_number(folder + "/memory.stat", group.cached).value_or(0);
      const uint64_t held = *used > cached ? *used - cached : 0;
      const uint64_t left = *most > held ? *most - held : 1;  // 0 would mean that it is unknown
      rest = std::min(rest.value_or(left), left);
    }
  }
  return rest;
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
  const auto system = read_number(root + "/proc/meminfo", "MemAvailable:");
  const auto group = control_group_rest(root);
  if (!system) return group.value_or(0);
  return group ? std::min(*system * kKib, *group) : *system * kKib;
}

uint64_t total_memory(const std::string& root) {
  uint64_t total = read_number(root + "/proc/meminfo", "MemTotal:").value_or(0) * kKib;
  for (const GroupFiles& group : kGroups) {
    for (const std::string& folder : group_folders(root, group.controller)) {
      if (const auto limit = read_number(folder + group.most))
        total = total == 0 ? *limit : std::min(total, *limit);
    }
  }
  return total;
}

// The files have the microseconds of processor time that may be used in a period. Version 2 has
// both numbers in one file, "150000 100000", and "max" for no quota; version 1 has two files, and a
// quota of -1 then.
double granted_processors(const std::string& root) {
  double granted = 0;
  for (const char* controller : {"", "cpu"}) {
    for (const std::string& folder : group_folders(root, controller)) {
      int64_t quota = 0, period = 0;
      std::ifstream both(folder + "/cpu.max");
      std::ifstream quota_file(folder + "/cpu.cfs_quota_us");
      std::ifstream period_file(folder + "/cpu.cfs_period_us");
      const bool found =
          (both >> quota >> period) || (quota_file >> quota && period_file >> period);
      if (!found || quota <= 0 || period <= 0) continue;
      const double here = static_cast<double>(quota) / static_cast<double>(period);
      granted = granted > 0 ? std::min(granted, here) : here;
    }
  }
  return granted;
}

int usable_cores(const std::string& root) {
  const int bound = bound_processors();
  const double granted = std::ceil(granted_processors(root));
  return granted > 0 && granted < bound ? static_cast<int>(granted) : bound;
}

int64_t second_level_cache() {
#ifdef _SC_LEVEL2_CACHE_SIZE
  return std::max(0L, sysconf(_SC_LEVEL2_CACHE_SIZE));
#else
  return 0;
#endif
}

uint64_t third_level_cache(const std::string& root) {
  const std::string path = root + "/sys/devices/system/cpu/cpu0/cache/index3/size";  // "32768K"
  return read_number(path).value_or(0) * kKib;
}

void return_free_memory() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

void share_free_memory() {
#ifdef __GLIBC__
  mallopt(M_ARENA_MAX, 1);
#endif
}

}  // namespace limpid
