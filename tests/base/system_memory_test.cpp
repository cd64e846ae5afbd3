#include "base/system_memory.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "checkpoint/temp_file.h"

namespace limpid {
namespace {

// A system with 1,000 KiB, of which 600 are available.
class SystemMemory : public testing::Test {
 protected:
  SystemMemory() {
    for (const char* folder : {"proc", "sys/fs/cgroup/memory"})
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

TEST_F(SystemMemory, IsThatOfTheMachineWithoutAControlGroup) {
  EXPECT_EQ(available(), 600U * 1024);
  EXPECT_EQ(total(), 1000U * 1024);
}

TEST_F(SystemMemory, IsWhatAControlGroupOfVersion2Allows) {
  write_group_2("100000\n");
  EXPECT_EQ(available(), 30000U);
  EXPECT_EQ(total(), 100000U);
  write_group_2("max\n");
  EXPECT_EQ(available(), 600U * 1024);
  EXPECT_EQ(total(), 1000U * 1024);
}

TEST_F(SystemMemory, IsWhatAControlGroupOfVersion1Allows) {
  write_group_1("100000\n");
  EXPECT_EQ(available(), 30000U);
  EXPECT_EQ(total(), 100000U);
  write_group_1("9223372036854771712\n");  // no limit
  EXPECT_EQ(available(), 600U * 1024);
  EXPECT_EQ(total(), 1000U * 1024);
}

// 0 would mean that it is unknown, and then no plan is checked.
TEST_F(SystemMemory, OfAFullControlGroupIsKnown) {
  write_group_2("70000\n");
  EXPECT_EQ(available(), 1U);
}

}  // namespace
}  // namespace limpid
