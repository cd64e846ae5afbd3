#include "cli/checkup.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace limpid::cli {
namespace {

// A machine on which nothing deserves a word.
Checkup healthy() {
  Checkup checkup;
  checkup.build = {"GCC", true, false, ""};
  checkup.machine.n_cores = 8;
  checkup.machine.memory_bytes = 16'000'000'000;
  checkup.machine.available_bytes = 8'000'000'000;
  checkup.machine.isas = {"avx2", "scalar"};
  checkup.machine.isa = "avx2";
  checkup.governor = "performance";
  checkup.cache.path = "/home/you/.cache/limpid";
  checkup.cache.free_bytes = 10'000'000'000;
  checkup.model = {"/home/you/.cache/limpid/models/m.gguf", "verified"};
  return checkup;
}

void expect_one(const Checkup& checkup, bool is_problem, const std::string& words) {
  const std::vector<Finding> findings = judge(checkup);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].is_problem, is_problem);
  EXPECT_NE(findings[0].text.find(words), std::string::npos) << findings[0].text;
}

TEST(Judge, NothingToSayOfAHealthyMachine) { EXPECT_TRUE(judge(healthy()).empty()); }

TEST(Judge, ABuildForDebuggingIsNoted) {
  Checkup debug = healthy();
  debug.build.is_optimised = false;
  expect_one(debug, false, "cmake --preset release");
  Checkup sanitised = healthy();
  sanitised.build.is_sanitised = true;
  expect_one(sanitised, false, "sanitizers");
}

TEST(Judge, ASlowClockIsNoted) {
  Checkup checkup = healthy();
  checkup.governor = "powersave";
  expect_one(checkup, false, "cpupower frequency-set -g performance");
}

TEST(Judge, ACpuWithoutKernelsOfItsOwnIsNoted) {
  Checkup checkup = healthy();
  checkup.machine.isas = {"scalar"};
  checkup.machine.isa = "scalar";
  expect_one(checkup, false, "slow");
}

TEST(Judge, SaysWhyAGpuIsNotUsed) {
  Checkup checkup = healthy();
  gpu::DeviceInfo device;
  device.api = "cuda";
  const auto note_of = [&](const gpu::DeviceList& list, bool has_nvidia) -> std::string {
    checkup.machine.gpus = {{"cuda", list}};
    checkup.has_nvidia = has_nvidia;
    const std::vector<Finding> findings = judge(checkup);
    if (findings.empty()) return "";
    EXPECT_FALSE(findings[0].is_problem);
    return findings[0].text;
  };
  EXPECT_EQ(note_of({{}, "no driver"}, false), "");
  EXPECT_EQ(note_of({{}, "no driver"}, true),
            "a GPU is here that --device cuda cannot use: no driver");
  EXPECT_EQ(note_of({{device}, "NVRTC is not installed"}, true),
            "a GPU is here that --device cuda cannot use: NVRTC is not installed");
  EXPECT_EQ(note_of({{device}, ""}, true),
            "a GPU is here; answers come from the CPU unless --device cuda is given");
  device.is_cpu = true;
  EXPECT_EQ(note_of({{device}, ""}, false), "");
}

TEST(Judge, TooLittleMemoryIsAProblem) {
  Checkup checkup = healthy();
  checkup.machine.available_bytes = 100'000'000;
  expect_one(checkup, true, "100.0 MB of memory are available");
  checkup.machine.available_bytes = 0;  // unknown
  EXPECT_TRUE(judge(checkup).empty());
}

TEST(Judge, AFullDiskIsAProblemOnlyBeforeTheModelIsThere) {
  Checkup checkup = healthy();
  checkup.cache.free_bytes = 1'000'000;
  EXPECT_TRUE(judge(checkup).empty());
  checkup.model.state = "absent";
  const std::vector<Finding> findings = judge(checkup);
  ASSERT_EQ(findings.size(), 2U);
  EXPECT_TRUE(findings[0].is_problem) << "problems come first";
  EXPECT_NE(findings[0].text.find("free some space"), std::string::npos);
  EXPECT_NE(findings[1].text.find("limpid pull smollm2"), std::string::npos);
}

TEST(Judge, ACacheThatCannotBeWrittenIsAProblem) {
  Checkup checkup = healthy();
  checkup.cache.problem = "nothing can be written to /home/you";
  expect_one(checkup, true, "XDG_CACHE_HOME");
}

TEST(Judge, ADamagedModelIsAProblem) {
  Checkup checkup = healthy();
  checkup.model.state = "damaged";
  expect_one(checkup, true, "limpid pull smollm2");
}

}  // namespace
}  // namespace limpid::cli
