#include "base/system_limits.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "checkpoint/temp_file.h"

namespace limpid {
namespace {

// A system with 1,000 KiB, of which 600 are available.
class SystemLimits : public testing::Test {
 protected:
  SystemLimits() {
    for (const char* folder :
         {"proc/self", "sys/fs/cgroup/memory/a/b", "sys/fs/cgroup/cpu/a", "sys/fs/cgroup/a/b"})
      std::filesystem::create_directories(root_.path(folder));
    root_.write("proc/meminfo", "MemTotal:  1000 kB\nMemFree:  300 kB\nMemAvailable:  600 kB\n");
  }
  void write_group_2(const char* most) const {
    root_.write("sys/fs/cgroup/memory.max", most);
    root_.write("sys/fs/cgroup/memory.current", "90000\n");
    root_.write("sys/fs/cgroup/memory.stat", "anon 70000\ninactive_file 20000\n");
  }
  void write_group_1(const char* most) const {
    root_.write("sys/fs/cgroup/memory/memory.limit_in_bytes", most);
    root_.write("sys/fs/cgroup/memory/memory.usage_in_bytes", "90000\n");
    root_.write("sys/fs/cgroup/memory/memory.stat", "inactive_file 1\ntotal_inactive_file 20000\n");
  }
  uint64_t available() const { return available_memory(root_.folder()); }
  uint64_t total() const { return total_memory(root_.folder()); }

  TempFolder root_;
};

TEST_F(SystemLimits, MemoryIsThatOfTheMachineWithoutAControlGroup) {
  EXPECT_EQ(available(), 600U * 1024);
  EXPECT_EQ(total(), 1000U * 1024);
}

TEST_F(SystemLimits, MemoryIsWhatAControlGroupOfVersion2Allows) {
  write_group_2("100000\n");
  EXPECT_EQ(available(), 30000U);
  EXPECT_EQ(total(), 100000U);
  write_group_2("max\n");
  EXPECT_EQ(available(), 600U * 1024);
  EXPECT_EQ(total(), 1000U * 1024);
}

TEST_F(SystemLimits, MemoryIsWhatAControlGroupOfVersion1Allows) {
  write_group_1("100000\n");
  EXPECT_EQ(available(), 30000U);
  EXPECT_EQ(total(), 100000U);
  write_group_1("9223372036854771712\n");  // no limit
  EXPECT_EQ(available(), 600U * 1024);
  EXPECT_EQ(total(), 1000U * 1024);
}

// 0 would mean that it is unknown, and then no plan is checked.
TEST_F(SystemLimits, MemoryOfAFullControlGroupIsKnown) {
  write_group_2("70000\n");
  EXPECT_EQ(available(), 1U);
}

// A service of systemd has a group of its own, within others.
TEST_F(SystemLimits, TheNarrowestGroupCounts) {
  root_.write("proc/self/cgroup", "0::/a/b\n");
  root_.write("sys/fs/cgroup/a/memory.max", "100000\n");
  root_.write("sys/fs/cgroup/a/memory.current", "90000\n");
  EXPECT_EQ(available(), 10000U);
  EXPECT_EQ(total(), 100000U);
  root_.write("sys/fs/cgroup/a/b/memory.max", "5000\n");
  root_.write("sys/fs/cgroup/a/b/memory.current", "4000\n");
  EXPECT_EQ(available(), 1000U);
  EXPECT_EQ(total(), 5000U);
  root_.write("proc/self/cgroup", "0::/\n");
  EXPECT_EQ(available(), 600U * 1024);
  root_.write("proc/self/cgroup", "4:memory:/a/b\n2:cpuacct,cpu:/a\n1:name=systemd:/x\n0::/\n");
  root_.write("sys/fs/cgroup/memory/a/b/memory.limit_in_bytes", "3000\n");
  root_.write("sys/fs/cgroup/memory/a/b/memory.usage_in_bytes", "1000\n");
  EXPECT_EQ(available(), 2000U);
  EXPECT_EQ(total(), 3000U);
  EXPECT_EQ(granted_processors(root_.folder()), 0);
  root_.write("sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "50000\n");
  root_.write("sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(granted_processors(root_.folder()), 0.5);
  // Of a container that does not see the groups around it.
  root_.write("proc/self/cgroup", "0::/not/there\n0::relative\nnonsense\n\n:\n");
  EXPECT_EQ(available(), 600U * 1024);
}

// What the machine here has is not known, but a quota of 1 is never more.
TEST_F(SystemLimits, ProcessorsAreThoseThatAQuotaLetsRun) {
  const int without = usable_cores(root_.folder());
  EXPECT_GE(without, 1);
  const auto with_version_2 = [&](const char* quota) {
    root_.write("sys/fs/cgroup/cpu.max", quota);
    return usable_cores(root_.folder());
  };
  EXPECT_EQ(with_version_2("50000 100000\n"), 1);
  EXPECT_EQ(with_version_2("100000 100000\n"), 1);
  EXPECT_EQ(with_version_2("150000 100000\n"), std::min(without, 2));
  EXPECT_EQ(granted_processors(root_.folder()), 1.5);
  EXPECT_EQ(with_version_2("9000000000 1\n"), without);
  EXPECT_EQ(with_version_2("max 100000\n"), without);
  std::filesystem::remove(root_.path("sys/fs/cgroup/cpu.max"));
  const auto with_version_1 = [&](const char* quota) {
    root_.write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", quota);
    root_.write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
    return usable_cores(root_.folder());
  };
  EXPECT_EQ(with_version_1("20000\n"), 1);
  EXPECT_EQ(with_version_1("-1\n"), without);
  EXPECT_EQ(granted_processors(root_.folder()), 0);
}

TEST_F(SystemLimits, ThirdLevelCacheIsThatOfTheFirstProcessor) {
  EXPECT_EQ(third_level_cache(root_.folder()), 0U);
  std::filesystem::create_directories(root_.path("sys/devices/system/cpu/cpu0/cache/index3"));
  root_.write("sys/devices/system/cpu/cpu0/cache/index3/size", "32768K\n");
  EXPECT_EQ(third_level_cache(root_.folder()), uint64_t{32} << 20);
}

}  // namespace
}  // namespace limpid
