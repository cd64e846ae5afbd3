#include "cli/http_file.h"

#include <curl/curl.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <exception>
#include <memory>
#include <thread>
#include <utility>

#include "base/check.h"

namespace limpid::cli {
namespace {

constexpr long kConnectSeconds = 20;
constexpr long kSlowSeconds = 30;  // without a byte
constexpr long kOk = 200;
constexpr long kPartialContent = 206;
constexpr long kRangeNotSatisfiable = 416;

using Easy = std::unique_ptr<CURL, decltype(&curl_easy_cleanup)>;
using HeaderList = std::unique_ptr<curl_slist, decltype(&curl_slist_free_all)>;

// One transfer with what all of them have in common.
class Transfer {
 public:
  explicit Transfer(const HttpRequest& request)
      : easy_(make(), curl_easy_cleanup), headers_(nullptr, curl_slist_free_all) {
    set(CURLOPT_URL, request.url.c_str());
    set(CURLOPT_PROTOCOLS_STR, "http,https");
    set(CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
    set(CURLOPT_FOLLOWLOCATION, 1L);
    set(CURLOPT_MAXREDIRS, 5L);
    set(CURLOPT_NOSIGNAL, 1L);
    set(CURLOPT_CONNECTTIMEOUT, kConnectSeconds);
    set(CURLOPT_LOW_SPEED_LIMIT, 1L);
    set(CURLOPT_LOW_SPEED_TIME, kSlowSeconds);
    set(CURLOPT_USERAGENT, "limpid/" LIMPID_VERSION);
    if (request.token.empty()) return;
    // libcurl does not hand it on when a redirect leads to another host.
    headers_.reset(curl_slist_append(nullptr, ("Authorization: Bearer " + request.token).c_str()));
    set(CURLOPT_HTTPHEADER, headers_.get());
  }

  template <typename T>
  void set(CURLoption option, T value) {
    curl_easy_setopt(easy_.get(), option, value);
  }

  CURLcode perform() { return curl_easy_perform(easy_.get()); }

  long status() const {
    long status = 0;
    curl_easy_getinfo(easy_.get(), CURLINFO_RESPONSE_CODE, &status);
    return status;
  }

 private:
  static CURL* make() {
    static const CURLcode ready = curl_global_init(CURL_GLOBAL_DEFAULT);
    CURL* easy = ready == CURLE_OK ? curl_easy_init() : nullptr;
    LIMPID_CHECK(ResourceError, easy != nullptr, "libcurl cannot be set up");
    return easy;
  }

  Easy easy_;
  HeaderList headers_;
};

[[noreturn]] void fail_status(const HttpRequest& request, long status) {
  std::string hint;
  if (status == 401 || status == 403) {
    hint = request.token.empty() ? "; it may need a token: set HF_TOKEN"
                                 : "; the token of HF_TOKEN is not allowed to";
  }
  if (status == 404) hint = "; is the name right?";
  throw ResourceError(fmt::format("cannot fetch {}: HTTP status {}{}", request.url, status, hint));
}

// Calls `work` on behalf of libcurl, whose C frames no exception may cross. What it throws is kept
// in `failure`, and libcurl gets `failed`, which ends the transfer.
template <typename Result, typename Work>
Result shielded(std::exception_ptr& failure, Result failed, Work work) noexcept {
  try {
    return work();
  } catch (...) {
    failure = std::current_exception();
    return failed;
  }
}

struct Body {
  const HttpSink* take;
  uint64_t most;
  uint64_t n_bytes = 0;
  std::exception_ptr failure{};
};

size_t take_body(const char* bytes, size_t size, size_t count, void* context) noexcept {
  auto& body = *static_cast<Body*>(context);
  return shielded(body.failure, size_t{0}, [&] {
    LIMPID_CHECK(ResourceError, size * count <= body.most - body.n_bytes,
                 "the answer is longer than {} bytes", body.most);
    (*body.take)({bytes, size * count});
    body.n_bytes += size * count;
    return size * count;
  });
}

// The file that a download goes on in.
class PartialFile {
 public:
  explicit PartialFile(const std::string& path)
      : path_(path), fd_(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644)) {
    LIMPID_CHECK(ResourceError, fd_ >= 0, "cannot write {}: {}", path, std::strerror(errno));
    size_ = static_cast<uint64_t>(::lseek(fd_, 0, SEEK_END));
  }
  ~PartialFile() { ::close(fd_); }
  PartialFile(const PartialFile&) = delete;
  PartialFile& operator=(const PartialFile&) = delete;

  uint64_t size() const { return size_; }
  void begin_anew() {
    check(::ftruncate(fd_, 0) == 0 && ::lseek(fd_, 0, SEEK_SET) == 0);
    size_ = 0;
  }
  void append(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t n = ::write(fd_, bytes.data(), bytes.size());
      if (n < 0 && errno == EINTR) continue;
      check(n > 0);
      bytes.remove_prefix(static_cast<size_t>(n));
      size_ += static_cast<uint64_t>(n);
    }
  }
  void sync() { check(::fsync(fd_) == 0); }

 private:
  void check(bool good) const {
    LIMPID_CHECK(ResourceError, good, "cannot write {}: {}", path_, std::strerror(errno));
  }

  std::string path_;
  int fd_;
  uint64_t size_ = 0;
};

struct Download {
  const Transfer* transfer;
  PartialFile* file;
  uint64_t n_bytes;
  const HttpProgress* progress;
  bool first = true;
  bool stopped = false;
  std::exception_ptr failure{};
};

size_t take_part(const char* bytes, size_t size, size_t count, void* context) noexcept {
  auto& download = *static_cast<Download*>(context);
  const std::string_view part(bytes, size * count);
  return shielded(download.failure, size_t{0}, [&] {
    const long status = download.transfer->status();
    if (status != kOk && status != kPartialContent) return part.size();  // an error page
    if (std::exchange(download.first, false) && status == kOk && download.file->size() > 0)
      download.file->begin_anew();  // the server does not know ranges
    LIMPID_CHECK(ResourceError, part.size() <= download.n_bytes - download.file->size(),
                 "it is larger than the {} bytes announced", download.n_bytes);
    download.file->append(part);
    return part.size();
  });
}

int look_up(void* context, curl_off_t, curl_off_t, curl_off_t, curl_off_t) noexcept {
  auto& download = *static_cast<Download*>(context);
  return shielded(download.failure, 1, [&] {
    download.stopped = !(*download.progress)(download.file->size());
    return download.stopped ? 1 : 0;
  });
}

// Throws on what a callback kept; an error of ours says which transfer it ended.
void rethrow(const std::exception_ptr& failure, const HttpRequest& request) {
  if (failure == nullptr) return;
  try {
    std::rethrow_exception(failure);
  } catch (const ResourceError& error) {
    throw ResourceError(fmt::format("cannot fetch {}: {}", request.url, error.what()));
  }
}

bool is_worth_another_try(CURLcode code, long status) {
  if (code == CURLE_OK) return status >= 500 || status == 429;
  return code == CURLE_PARTIAL_FILE || code == CURLE_RECV_ERROR || code == CURLE_GOT_NOTHING ||
         code == CURLE_OPERATION_TIMEDOUT || code == CURLE_COULDNT_CONNECT ||
         code == CURLE_SEND_ERROR || code == CURLE_HTTP2 || code == CURLE_HTTP2_STREAM;
}

struct Outcome {
  CURLcode code;
  long status;
};

Outcome try_once(const HttpRequest& request, Download& download) {
  Transfer transfer(request);
  download.transfer = &transfer;
  download.first = true;
  if (download.file->size() > 0)
    transfer.set(CURLOPT_RESUME_FROM_LARGE, static_cast<curl_off_t>(download.file->size()));
  transfer.set(CURLOPT_WRITEFUNCTION, take_part);
  transfer.set(CURLOPT_WRITEDATA, &download);
  transfer.set(CURLOPT_NOPROGRESS, 0L);
  transfer.set(CURLOPT_XFERINFOFUNCTION, look_up);
  transfer.set(CURLOPT_XFERINFODATA, &download);
  const CURLcode code = transfer.perform();
  return {code, transfer.status()};
}

}  // namespace

void http_get(const HttpRequest& request, uint64_t most, const HttpSink& take) {
  Transfer transfer(request);
  Body body{&take, most};
  transfer.set(CURLOPT_FAILONERROR, 1L);
  transfer.set(CURLOPT_WRITEFUNCTION, take_body);
  transfer.set(CURLOPT_WRITEDATA, &body);
  const CURLcode code = transfer.perform();
  rethrow(body.failure, request);
  if (code == CURLE_HTTP_RETURNED_ERROR) fail_status(request, transfer.status());
  LIMPID_CHECK(ResourceError, code == CURLE_OK,
               "cannot fetch {}: {}; is there a network, and a proxy to name in https_proxy?",
               request.url, curl_easy_strerror(code));
  if (transfer.status() != kOk) fail_status(request, transfer.status());
}

std::string http_get(const HttpRequest& request, uint64_t most) {
  std::string text;
  http_get(request, most, [&](std::string_view part) { text += part; });
  return text;
}

bool http_fetch(const HttpRequest& request, const std::string& path, uint64_t n_bytes,
                const HttpProgress& progress, int n_tries) {
  PartialFile file(path);
  if (file.size() > n_bytes) file.begin_anew();
  Download download{nullptr, &file, n_bytes, &progress};
  int n_in_vain = 0;
  int n_restarts = 0;
  while (file.size() < n_bytes) {
    const uint64_t before = file.size();
    const Outcome outcome = try_once(request, download);
    if (download.stopped) return false;
    rethrow(download.failure, request);
    // libcurl takes 200 for a fault when it asked for a range: begin without one.
    const bool no_ranges =
        outcome.code == CURLE_RANGE_ERROR || outcome.status == kRangeNotSatisfiable;
    if (no_ranges) {
      file.begin_anew();
      LIMPID_CHECK(
          ResourceError, ++n_restarts < n_tries,
          "cannot fetch {}: the connection breaks, and the server cannot go on where it did",
          request.url);
    }
    if (file.size() == n_bytes) break;
    const bool hopeless = !no_ranges && !is_worth_another_try(outcome.code, outcome.status);
    if (hopeless && outcome.code == CURLE_OK && outcome.status >= 400)
      fail_status(request, outcome.status);
    n_in_vain = file.size() > before ? 0 : n_in_vain + 1;
    LIMPID_CHECK(ResourceError, !hopeless && n_in_vain < n_tries,
                 "cannot fetch {}: {} of {} bytes came ({}); run the same again to go on",
                 request.url, file.size(), n_bytes,
                 outcome.code == CURLE_OK ? fmt::format("HTTP status {}", outcome.status)
                                          : curl_easy_strerror(outcome.code));
    std::this_thread::sleep_for(std::chrono::milliseconds(100) * (1 << n_in_vain));
  }
  file.sync();
  return true;
}

}  // namespace limpid::cli
