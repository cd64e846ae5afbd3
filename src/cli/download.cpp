#include "cli/download.h"

#include <filesystem>
#include <span>

#include "base/atomic_file.h"
#include "base/cache_folder.h"
#include "base/check.h"
#include "base/sha256.h"
#include "cli/http_file.h"

namespace limpid::cli {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMaxBytes = uint64_t{1} << 30;

// One name per address; the end of the address stays readable.
std::string file_name_of(const std::string& url) {
  Sha256 digest;
  digest.update(std::as_bytes(std::span(url)));
  std::string name;
  for (const char c : url.substr(url.rfind('/') + 1)) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '-';
    name += plain ? c : '_';
  }
  constexpr size_t kDigits = 12;
  constexpr size_t kLongest = 64;
  return digest.hex().substr(0, kDigits) + "-" + name.substr(0, kLongest);
}

}  // namespace

// An AtomicFile appears only when the download is complete, so a file that is there is whole.
std::string download_once(const std::string& url) {
  LIMPID_CHECK(ArgumentError, url.starts_with("https://") || url.starts_with("http://"),
               "{} does not begin with https:// or http://", url);
  const fs::path folder = cache_folder("data");
  const fs::path path = folder / file_name_of(url);
  if (!fs::exists(path)) {
    fs::create_directories(folder);
    AtomicFile file(path);
    http_get({url, {}}, kMaxBytes, [&](std::string_view part) { file.write(part); });
    file.commit();
  }
  return path;
}

}  // namespace limpid::cli
