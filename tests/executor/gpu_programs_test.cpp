// Programs of kernels: what does not compile says why, and the cache gives back what was put in.
// Every program compiles for NVIDIA's architectures too, where NVRTC is installed; it needs no GPU.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>

#include "data_paths.h"
#include "executor/executors.h"
#include "executor/gpu/gpu_devices.h"
#include "executor/gpu/kernel_sources.h"
#include "executor/gpu/nvrtc.h"
#include "executor/gpu/program_cache.h"
#include "executor/gpu_devices.h"
#include "limpid/error.hpp"

namespace limpid {
namespace {

const gpu::ProgramSource kBroken{"broken", "this is not a kernel"};

// What f() throws, as text.
template <class Body>
std::string error_of(Body&& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

class GpuPrograms : public testing::GpuTest {};
INSTANTIATE_TEST_SUITE_P(Gpu, GpuPrograms, ::testing::ValuesIn(testing::kGpuApis),
                         testing::kNameOfApi);

TEST_P(GpuPrograms, WhatDoesNotCompileShowsTheCompilersLog) {
  const auto device = testing::open_gpu(GetParam());
  const std::string error = error_of([&] { device->compile(kBroken); });
  EXPECT_NE(error.find(device->info().name), std::string::npos) << error;
  EXPECT_NE(error.find("'broken'"), std::string::npos) << error;
  EXPECT_NE(error.find("error: "), std::string::npos) << error;
  const auto ops = gpu::cached_program(*device, gpu::op_program());
  EXPECT_NE(error_of([&] { ops->kernel("absent"); }).find("absent"), std::string::npos);
}

TEST_P(GpuPrograms, TooMuchMemoryIsAnErrorThatSaysWhatToDo) {
  const auto device = testing::open_gpu(GetParam());
  const std::string error =
      error_of([&] { device->allocate(uint64_t{1} << 50, "keys and values"); });
  // NVIDIA's OpenCL gives any address out, and memory when it is first used.
  if (error.empty() && std::string(GetParam()) == "opencl") GTEST_SKIP() << "it refuses no size";
  EXPECT_NE(error.find("keys and values"), std::string::npos) << error;
  EXPECT_NE(error.find("use a smaller context"), std::string::npos) << error;
  if (device->info().api == "opencl") {
    EXPECT_NE(error.find("a buffer of this device has at most "), std::string::npos) << error;
  }
}

// A folder of its own for the cache, for as long as it lives.
class CacheElsewhere {
 public:
  CacheElsewhere() : folder_(::testing::TempDir() + "/limpid_gpu_cache") {
    std::filesystem::remove_all(folder_);
    if (const char* before = std::getenv("XDG_CACHE_HOME")) before_ = before;
    setenv("XDG_CACHE_HOME", folder_.c_str(), 1);
  }
  ~CacheElsewhere() {
    if (before_.empty())
      unsetenv("XDG_CACHE_HOME");
    else
      setenv("XDG_CACHE_HOME", before_.c_str(), 1);
    std::filesystem::remove_all(folder_);
  }
  std::vector<std::filesystem::path> files() const {
    std::vector<std::filesystem::path> found;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_))
      if (entry.is_regular_file() && entry.path().parent_path().filename() == "gpu")
        found.push_back(entry.path());
    std::ranges::sort(found);
    return found;
  }

 private:
  std::string folder_;
  std::string before_;
};

TEST_P(GpuPrograms, AreKeptAndADamagedFileIsCompiledAnew) {
  const CacheElsewhere cache;
  const auto device = testing::open_gpu(GetParam());
  const gpu::ProgramSource source = gpu::op_program();
  EXPECT_EQ(device_without_kernels(GetParam()), device->info().name);
  gpu::cached_program(*device, source);
  EXPECT_EQ(device_without_kernels(GetParam()), "");
  const auto files = cache.files();
  ASSERT_FALSE(files.empty());
  EXPECT_NE(gpu::cached_program(*device, source)->kernel("add"), nullptr);
  EXPECT_EQ(cache.files(), files);
  std::vector<uintmax_t> sizes;
  for (const auto& file : files) {
    sizes.push_back(std::filesystem::file_size(file));
    EXPECT_TRUE(file.filename().string().starts_with("ops-"));
    // A driver may crash on half of a program.
    std::filesystem::resize_file(file, sizes.back() / 2);
  }
  EXPECT_NE(gpu::cached_program(*device, source)->kernel("add"), nullptr);
  for (size_t i = 0; i < files.size(); ++i)
    EXPECT_GT(std::filesystem::file_size(files[i]), sizes[i] / 2) << files[i];
  gpu::ProgramSource other = source;
  other.text += "// another text\n";
  gpu::cached_program(*device, other);
  EXPECT_EQ(cache.files().size(), 2 * files.size());
}

// A device that compiles to its own description.
class NamedDevice final : public gpu::Device {
 public:
  explicit NamedDevice(gpu::DeviceInfo info) : Device(std::move(info)) {}
  int n_compiled = 0;

  uint64_t available_memory() const override { return 0; }
  std::unique_ptr<gpu::Buffer> allocate(uint64_t, std::string_view) override { return nullptr; }
  void write(const gpu::Buffer&, uint64_t, std::span<const std::byte>) override {}
  void read(const gpu::Buffer&, uint64_t, std::span<std::byte>) override {}
  void copy(const gpu::Buffer&, const gpu::Buffer&, uint64_t) override {}
  void zero(const gpu::Buffer&, uint64_t, uint64_t) override {}
  std::unique_ptr<gpu::Program> compile(const gpu::ProgramSource&) override {
    ++n_compiled;
    return std::make_unique<Named>();
  }
  std::unique_ptr<gpu::Program> load(const std::string&) override {
    return std::make_unique<Named>();
  }
  void launch(const gpu::Kernel&, const gpu::Grid&, std::span<const gpu::Argument>) override {}
  void flush() noexcept override {}

 private:
  class Named final : public gpu::Program {
   public:
    std::unique_ptr<gpu::Kernel> kernel(const std::string&) override { return nullptr; }
    std::string binary() override { return "machine code"; }
  };
};

// What was compiled for one device and driver is not taken for another.
TEST(ProgramCache, IsKeyedByTextDeviceDriverAndOptions) {
  const CacheElsewhere cache;
  const auto n_compiled = [](const char* api, const char* name, const char* driver,
                             const char* architecture, const char* text,
                             const char* options = "-O2") {
    gpu::DeviceInfo info;
    info.api = api;
    info.name = name;
    info.driver = driver;
    info.architecture = architecture;
    info.options = options;
    NamedDevice device(info);
    gpu::cached_program(device, {"tiny", text});
    return device.n_compiled;
  };
  EXPECT_EQ(n_compiled("cuda", "A", "1", "sm_80", "text"), 1);
  EXPECT_EQ(n_compiled("cuda", "A", "1", "sm_80", "text"), 0);
  EXPECT_EQ(n_compiled("opencl", "A", "1", "sm_80", "text"), 1);
  EXPECT_EQ(n_compiled("cuda", "B", "1", "sm_80", "text"), 1);
  EXPECT_EQ(n_compiled("cuda", "A", "2", "sm_80", "text"), 1);
  EXPECT_EQ(n_compiled("cuda", "A", "1", "sm_90a", "text"), 1);
  EXPECT_EQ(n_compiled("cuda", "A", "1", "sm_80", "texts"), 1);
  EXPECT_EQ(n_compiled("cuda", "A", "1", "sm_80", "text", "-O3"), 1);
  EXPECT_EQ(n_compiled("cuda", "A", "1", "sm_80", "text"), 0);
}

// A kernel that forgets AWAIT reads what the launch before has not written yet, but only on a GPU
// whose kernels overlap, and not always. So this looks for the word in the text of each kernel, or
// in that of a function that the kernel calls.
TEST(KernelSources, EveryKernelAwaitsTheLaunchesBefore) {
  static const std::regex start(R"(\n(FUNCTION|KERNEL)[^;{]*?(\w+)\()");
  for (const gpu::ProgramSource& source : gpu::all_programs()) {
    std::vector<std::string> awaiting = {"AWAIT"};
    int n_kernels = 0;
    const std::string& text = source.text;
    for (std::sregex_iterator at(text.begin(), text.end(), start), end; at != end; ++at) {
      const auto next = std::next(at);
      const auto from = static_cast<size_t>(at->position());
      const std::string body = text.substr(
          from, next == end ? std::string::npos : static_cast<size_t>(next->position()) - from);
      const bool awaits = std::ranges::any_of(awaiting, [&](const std::string& name) {
        return body.find("  " + name + "(") != std::string::npos;
      });
      if (awaits) awaiting.push_back((*at)[2]);
      if ((*at)[1] != "KERNEL") continue;
      ++n_kernels;
      EXPECT_TRUE(awaits) << source.name << ": " << body.substr(0, 80);
    }
    EXPECT_GE(n_kernels, 3) << source.name;
  }
}

TEST(Nvrtc, ShowsItsLogForWhatDoesNotCompile) {
  if (const std::string problem = gpu::nvrtc_problem(); !problem.empty()) GTEST_SKIP() << problem;
  const std::string error = error_of([] { gpu::compile_to_cubin(kBroken, "sm_100", "a GPU"); });
  EXPECT_NE(error.find("'broken' do not compile for sm_100"), std::string::npos) << error;
  EXPECT_NE(error.find("error: expected a declaration"), std::string::npos) << error;
}

// Bytes, by "program kernel architecture".
std::map<std::string, int64_t> known_spills() {
  std::ifstream file(testing::source_path("tests/executor/known_spills.txt"));
  std::map<std::string, int64_t> known;
  std::string program, kernel, architecture;
  std::getline(file, program);  // the names of the columns
  for (int64_t n_bytes = 0; file >> program >> kernel >> architecture >> n_bytes;)
    known[fmt::format("{} {} {}", program, kernel, architecture)] = n_bytes;
  return known;
}

// Bytes, by kernel.
std::map<std::string, int64_t> spills_in(const std::string& log) {
  static const std::regex kernel(
      R"('(\w+)' for 'sm_\w+'[\s\S]*?(\d+) bytes spill stores, (\d+) bytes spill loads)");
  std::map<std::string, int64_t> spills;
  for (std::sregex_iterator at(log.begin(), log.end(), kernel), end; at != end; ++at)
    spills[(*at)[1]] = std::stoll((*at)[2]) + std::stoll((*at)[3]);
  return spills;
}

class CudaPrograms : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Nvrtc, CudaPrograms,
                         ::testing::Values("sm_80", "sm_89", "sm_90a", "sm_100"),
                         [](const auto& info) { return std::string(info.param); });

// linear_many is for prompts in f32, and pack for loading; tools/gpu_kernels.py tells what they
// spill. Two registers, stored and loaded once, come and go with the version of the compiler.
TEST_P(CudaPrograms, CompileAndDoNotSpill) {
  constexpr int64_t kFewBytes = 16;
  if (const std::string problem = gpu::nvrtc_problem(); !problem.empty()) GTEST_SKIP() << problem;
  auto known = known_spills();
  for (const gpu::ProgramSource& source : gpu::all_programs()) {
    std::string log;
    const std::string cubin = gpu::compile_to_cubin(source, GetParam(), "no GPU", &log);
    EXPECT_TRUE(
        cubin.starts_with("\x7f"
                          "ELF"))
        << source.name;
    const auto spills = spills_in(log);
    EXPECT_GE(spills.size(), 3U) << source.name << ": " << log;
    for (const auto& [kernel, n_bytes] : spills) {
      if (kernel == "linear_many" || kernel == "pack") continue;
      const std::string name = fmt::format("{} {} {}", source.name, kernel, GetParam());
      EXPECT_LE(n_bytes, std::max(kFewBytes, known[name])) << name;
    }
  }
}

TEST(GpuDevices, NamesSayWhichApiAndWhichDevice) {
  EXPECT_EQ(make_gpu_executor("cpu"), nullptr);
  EXPECT_THROW(make_gpu_executor("opencl:x"), ArgumentError);
  EXPECT_THROW(make_executor("gpu"), ArgumentError);
  for (const GpuApi& api : gpu_apis()) {
    if (api.list.devices.empty()) {
      EXPECT_NE(api.list.problem, "");
      const std::string error = error_of([&] { make_gpu_executor(api.name); });
      EXPECT_NE(error.find(api.list.problem), std::string::npos) << error;
      EXPECT_NE(error.find("a device that is here (OpenOptions::device): cpu"), std::string::npos);
    } else {
      EXPECT_EQ(api.list.devices[0].api, api.name);
      EXPECT_THROW(make_gpu_executor(std::string(api.name) + ":99"), ArgumentError);
    }
  }
}

}  // namespace
}  // namespace limpid
