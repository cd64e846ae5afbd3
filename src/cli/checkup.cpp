// check_up() looks, and judge() draws conclusions. They are apart so that a test can make up a
// machine that it does not have (a clock that saves power, a full disk) and read what judge() says
// about it.
//
// A finding is a problem if the first chat would fail. All else is a note: "it works, and this
// would make it faster". Each ends with what to do.
#include "cli/checkup.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>

#include "base/atomic_file.h"
#include "base/cache_folder.h"
#include "base/sha256.h"
#include "base/system_limits.h"
#include "cli/model_path.h"
#include "cli/output.h"
#include "limpid/error.hpp"
#include "train/mpi_ranks.h"

namespace limpid::cli {
namespace {

namespace fs = std::filesystem;

// Measuring reads an array of 512 MB.
constexpr uint64_t kEnoughToMeasure = uint64_t{1} << 30;
// SmolLM2 with a context of 2,048 tokens takes about 300 MB.
constexpr uint64_t kEnoughToChat = 400'000'000;

// Facts about this build come from the macros that the compiler sets.
Build look_at_build() {
  Build build;
#if defined(__clang__)
  build.compiler = fmt::format("clang {}", __clang_version__);
#else
  build.compiler = fmt::format("GCC {}", __VERSION__);
#endif
#if !defined(__OPTIMIZE__)
  build.is_optimised = false;
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  build.is_sanitised = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
  build.is_sanitised = true;
#endif
#endif
  build.mpi = mpi_version();
  return build;
}

// The folder, or the nearest parent of it that exists.
fs::path existing_part(fs::path folder) {
  while (!is_there(folder) && folder.has_relative_path()) folder = folder.parent_path();
  return folder.empty() ? "." : folder;  // XDG_CACHE_HOME may be relative
}

// Why nothing can be written to the existing folder, or "".
std::string why_not_writable(const fs::path& existing) {
  try {
    const AtomicFile probe((existing / "limpid-doctor").string());
    return "";
  } catch (const Error&) {
    return fmt::format("nothing can be written to {}", existing.string());
  }
}

// The folder may not exist yet; then the part of its path that does exist tells whether it can be
// made.
CacheState look_at_cache() {
  CacheState cache;
  try {
    cache.path = cache_folder();
  } catch (const ResourceError& error) {
    cache.problem = error.what();
    return cache;
  }
  const fs::path existing = existing_part(cache.path);
  cache.problem = why_not_writable(existing);
  std::error_code error;
  CacheState::Entry loose{"files beside them", {}};
  for (const fs::path& path : entries_of(cache.path)) {
    if (is_folder(path)) {
      const bool is_link = fs::is_symlink(path, error);
      cache.entries.push_back(
          {path.filename().string(), is_link ? FolderSize{} : size_of_folder(path)});
    } else {
      ++loose.size.n_files;
      loose.size.n_bytes += size_of_file(path);
    }
  }
  if (loose.size.n_files > 0) cache.entries.push_back(loose);
  const fs::space_info space = fs::space(existing, error);
  if (!error) cache.free_bytes = space.available;
  return cache;
}

// A file of the right name counts only if its SHA-256 is right: a broken download looks like a
// model.
FirstModel look_at_model(const CacheState& cache) {
  const NamedModel& named = kNamedModels[0];
  FirstModel model;
  if (cache.path.empty()) return model;
  model.path = (fs::path(models_directory()) / named.file_name()).string();
  if (!is_there(model.path)) return model;
  model.state = "damaged";
  try {
    if (sha256_of_file(model.path) == named.sha256) model.state = "verified";
  } catch (const ResourceError&) {  // cannot be read, so it counts as damaged
  }
  return model;
}

using Tell = std::function<void(std::string finding)>;

// What makes answers slower than they could be.
void judge_speed(const Checkup& checkup, const Tell& note) {
  const Machine& machine = checkup.machine;
  if (checkup.build.is_sanitised)
    note("built with sanitizers, many times slower; for use: cmake --preset release");
  else if (!checkup.build.is_optimised)
    note("built without optimisation, many times slower; for use: cmake --preset release");
  if (machine.isas.front() == "scalar")
    note("this CPU has none of the instruction sets with kernels of their own: answers are slow");
  else if (machine.isa != machine.isas.front())
    note(fmt::format("kernels for {} run, and {} would be faster: unset LIMPID_ISA", machine.isa,
                     machine.isas.front()));
  if (checkup.governor == "powersave")
    note(
        "the clock's governor is powersave: faster with `cpupower frequency-set -g performance` "
        "(as root)");
}

// Why an installed GPU is not used.
void judge_gpus(const Checkup& checkup, const Tell& note) {
  for (const auto& [api, list] : checkup.machine.gpus) {
    const bool has_gpu = std::ranges::any_of(
        list.devices, [](const gpu::DeviceInfo& device) { return !device.is_cpu; });
    if (has_gpu && list.problem.empty())
      note(
          fmt::format("a GPU is here; answers come from the CPU unless --device {} is given", api));
    else if (has_gpu || (api == "cuda" && checkup.has_nvidia))
      note(fmt::format("a GPU is here that --device {} cannot use: {}", api, list.problem));
  }
}

// Problems of memory, disk and model that prevent a first chat.
void judge_first_chat(const Checkup& checkup, const Tell& problem) {
  const uint64_t available = checkup.machine.available_bytes;
  const CacheState& cache = checkup.cache;
  const FirstModel& model = checkup.model;
  const NamedModel& first = kNamedModels[0];
  if (available > 0 && available < kEnoughToChat)
    problem(
        fmt::format("{} of memory are available, and {} needs {}: close other programs, or "
                    "raise the container's limit",
                    format_bytes(available), first.name, format_bytes(kEnoughToChat)));
  const uint64_t needed = first.n_bytes + first.package_bytes;
  if (!cache.problem.empty())
    problem(cache.path.empty()
                ? cache.problem
                : fmt::format("{}: make it writable, or set XDG_CACHE_HOME to a folder that is",
                              cache.problem));
  else if (model.state == "absent" && cache.free_bytes < needed)
    problem(fmt::format("{} are free at {}, and pulling {} needs {}: free some space",
                        format_bytes(cache.free_bytes), cache.path, first.name,
                        format_bytes(needed)));
  if (model.state == "damaged")
    problem(fmt::format("{} is damaged; get it again: limpid pull {}", model.path, first.name));
}

}  // namespace

// Changes nothing: no folder is created, and the probe of the cache removes its file.
Checkup check_up(bool measure) {
  Checkup checkup;
  checkup.build = look_at_build();
  checkup.machine = look_at_machine();
  checkup.machine.gpus = gpu_apis();
  std::ifstream("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor") >> checkup.governor;
  checkup.cpu_quota = granted_processors();
  checkup.has_nvidia = is_there("/proc/driver/nvidia/version") || is_there("/dev/nvidia0");
  const uint64_t available = checkup.machine.available_bytes;
  if (measure && (available == 0 || available > kEnoughToMeasure))
    checkup.limits = measure_limits(checkup.machine.n_cores, "bf16");
  checkup.cache = look_at_cache();
  checkup.model = look_at_model(checkup.cache);
  return checkup;
}

std::vector<Finding> judge(const Checkup& checkup) {
  std::vector<Finding> findings;
  const auto note = [&](std::string text) { findings.push_back({false, std::move(text)}); };
  judge_first_chat(checkup, [&](std::string text) { findings.push_back({true, std::move(text)}); });
  judge_speed(checkup, note);
  judge_gpus(checkup, note);
  if (checkup.model.state == "absent")
    note(fmt::format("no model yet: limpid pull {}", kNamedModels[0].name));
  return findings;
}

}  // namespace limpid::cli
