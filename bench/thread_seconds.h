// Processor time of the calling thread, which other programs on the machine disturb little.
#pragma once

#include <ctime>

namespace limpid {

inline double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

}  // namespace limpid
