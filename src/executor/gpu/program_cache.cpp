#include "executor/gpu/program_cache.h"

#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/atomic_file.h"
#include "base/cache_folder.h"
#include "base/paths.h"
#include "base/sha256.h"
#include "limpid/error.hpp"

namespace limpid::gpu {
namespace {

// Each part ends with a zero byte, so that two different lists of parts are different messages.
std::string key_of(const DeviceInfo& info, const ProgramSource& source) {
  Sha256 hash;
  for (const std::string* part :
       {&info.api, &info.name, &info.driver, &info.architecture, &info.options, &source.text}) {
    hash.update(std::as_bytes(std::span(part->c_str(), part->size() + 1)));
  }
  return hash.hex();
}

// "" where there is nowhere to keep files.
std::filesystem::path path_of(const DeviceInfo& info, const ProgramSource& source) {
  try {
    return std::filesystem::path(cache_folder("gpu")) /
           (source.name + "-" + key_of(info, source).substr(0, 32));
  } catch (const ResourceError&) {
    return {};
  }
}

// A file is the binary and then its SHA-256, because a driver may crash on half of a binary.
constexpr size_t kDigits = 64;

// "" if the file is absent or damaged.
std::string read_binary(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::string content{std::istreambuf_iterator<char>(file), {}};
  if (content.size() < kDigits) return "";
  const std::string digits = content.substr(content.size() - kDigits);
  content.resize(content.size() - kDigits);
  return sha256_of(content) == digits ? content : "";
}

}  // namespace

std::unique_ptr<Program> cached_program(Device& device, const ProgramSource& source) {
  const std::filesystem::path path = path_of(device.info(), source);
  if (path.empty()) return device.compile(source);
  const std::string binary = read_binary(path);
  if (!binary.empty()) {
    if (auto program = device.load(binary)) return program;
  }
  auto program = device.compile(source);
  try {
    make_folder(path.parent_path().string());
    const std::string compiled = program->binary();
    write_file(path.string(), compiled + sha256_of(compiled));
  } catch (const ResourceError&) {  // a full disk, a folder of another user
  }
  return program;
}

bool is_new_to_cache(const DeviceInfo& info, const ProgramSource& source) {
  const std::filesystem::path path = path_of(info, source);
  return !path.empty() && !is_there(path);
}

}  // namespace limpid::gpu
