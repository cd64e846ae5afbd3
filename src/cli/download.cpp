#include "cli/download.h"

#include <curl/curl.h>

#include <filesystem>
#include <memory>
#include <span>

#include "base/atomic_file.h"
#include "base/cache_folder.h"
#include "base/check.h"
#include "base/sha256.h"

namespace limpid::cli {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMaxBytes = uint64_t{1} << 30;
constexpr long kConnectSeconds = 20;
constexpr long kSlowSeconds = 30;  // without a byte

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

struct Download {
  AtomicFile* file;
  std::string problem;
};

size_t take_bytes(const char* bytes, size_t size, size_t count, void* context) {
  auto& download = *static_cast<Download*>(context);
  const size_t n = size * count;
  if (download.file->size() + n > kMaxBytes) {
    download.problem = "it is larger than 1 GiB";
    return 0;
  }
  try {
    download.file->write({bytes, n});
  } catch (const Error& error) {  // must not cross libcurl
    download.problem = error.what();
    return 0;
  }
  return n;
}

void fetch(const std::string& url, const std::string& path) {
  static const CURLcode ready = curl_global_init(CURL_GLOBAL_DEFAULT);
  const std::unique_ptr<CURL, decltype(&curl_easy_cleanup)> curl(curl_easy_init(),
                                                                 curl_easy_cleanup);
  LIMPID_CHECK(ResourceError, ready == CURLE_OK && curl != nullptr, "libcurl does not start");
  AtomicFile file(path);
  Download download{&file, {}};
  curl_easy_setopt(curl.get(), CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl.get(), CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl.get(), CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl.get(), CURLOPT_FOLLOWLOCATION, 1L);
  curl_easy_setopt(curl.get(), CURLOPT_MAXREDIRS, 5L);
  curl_easy_setopt(curl.get(), CURLOPT_FAILONERROR, 1L);
  curl_easy_setopt(curl.get(), CURLOPT_CONNECTTIMEOUT, kConnectSeconds);
  curl_easy_setopt(curl.get(), CURLOPT_LOW_SPEED_LIMIT, 1L);
  curl_easy_setopt(curl.get(), CURLOPT_LOW_SPEED_TIME, kSlowSeconds);
  curl_easy_setopt(curl.get(), CURLOPT_WRITEFUNCTION, take_bytes);
  curl_easy_setopt(curl.get(), CURLOPT_WRITEDATA, &download);
  const CURLcode code = curl_easy_perform(curl.get());
  long status = 0;
  curl_easy_getinfo(curl.get(), CURLINFO_RESPONSE_CODE, &status);
  std::string problem = download.problem;
  if (problem.empty()) {
    problem = code == CURLE_HTTP_RETURNED_ERROR ? "the server answers " + std::to_string(status)
                                                : curl_easy_strerror(code);
  }
  LIMPID_CHECK(ResourceError, code == CURLE_OK, "cannot fetch {}: {}; --data takes a file", url,
               problem);
  file.commit();
}

}  // namespace

std::string download_once(const std::string& url) {
  LIMPID_CHECK(ArgumentError, url.starts_with("https://") || url.starts_with("http://"),
               "{} is no address that begins with https:// or http://", url);
  const fs::path folder = cache_folder("data");
  const fs::path path = folder / file_name_of(url);
  if (!fs::exists(path)) {
    fs::create_directories(folder);
    fetch(url, path);
  }
  return path;
}

}  // namespace limpid::cli
