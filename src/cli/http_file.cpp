// A download that broke off after 1,000 of 5,000 bytes goes on like this:
//
//   GET /model.gguf HTTP/1.1            HTTP/1.1 206 Partial Content
//   Range: bytes=1000-                  Content-Range: bytes 1000-4999/5000
//
// A server that knows no ranges answers 200 with all 5,000 bytes, and one that has fewer than 1,000
// answers 416. Both mean: start from the beginning.
//
// Tries are counted in a row. A download of hours over a bad line may break a hundred times, and
// each time some bytes came; only five tries without a byte end it. A server without ranges is
// counted apart: there each try begins at zero, so it could go on for ever.
#include "cli/http_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "base/check.h"

namespace limpid::cli {
namespace {

constexpr int64_t kOk = 200;
constexpr int64_t kPartialContent = 206;
constexpr int64_t kRangeNotSatisfiable = 416;
constexpr int kTries = 5;

[[noreturn]] void fail_status(const HttpRequest& request, int64_t status) {
  std::string hint;
  if (status == 401 || status == 403) {
    hint = request.token.empty() ? "; it may need a token: set HF_TOKEN"
                                 : "; the token of HF_TOKEN is not allowed to";
  }
  if (status == 404) hint = "; is the name right?";
  throw ResourceError(fmt::format("cannot fetch {}: HTTP status {}{}", request.url, status, hint));
}

// The file that a download continues.
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
    const char* then = errno == ENOSPC ? "; free some space, then run the same again to go on" : "";
    LIMPID_CHECK(ResourceError, good, "cannot write {}: {}{}", path_, std::strerror(errno), then);
  }

  std::string path_;
  int fd_;
  uint64_t size_ = 0;
};

// What one try of a download came to.
struct Try {
  int64_t status = 0;     // of HTTP; 0: no answer
  std::string fault{};    // of the connection, "": none
  bool may_pass = false;  // whether another try can help
  bool stopped = false;
};

// Asks for the bytes that are missing. The answer is 206 with the rest, 200 with the whole file
// from a server without ranges, or 416 when `file` holds something else. After 200 or 416 the
// download starts from the beginning.
Try fetch_rest(const HttpRequest& request, PartialFile& file, uint64_t n_bytes,
               const HttpProgress& progress) {
  Try result;
  const auto take = [&, begins = true](const HttpHead& head, std::string_view part) mutable {
    result.status = head.status;
    if (head.status != kOk && head.status != kPartialContent) return false;
    if (std::exchange(begins, false) && head.status == kOk) file.begin_anew();
    LIMPID_CHECK(ResourceError, part.size() <= n_bytes - file.size(),
                 "cannot fetch {}: it is larger than the {} bytes announced", request.url, n_bytes);
    file.append(part);
    return true;
  };
  const auto go_on = [&] { return !(result.stopped = !progress(file.size())); };
  try {
    result.status =
        http_exchange({request.url, request.token, {}, true, file.size()}, take, go_on).status;
    result.may_pass = result.status >= 500 || result.status == 429;
  } catch (const HttpFault& fault) {
    result.fault = fault.reason;
    result.may_pass = fault.may_pass;
  }
  return result;
}

}  // namespace

std::string http_get(const HttpRequest& request, uint64_t most) {
  std::string text;
  try {
    const auto take = [&](const HttpHead& head, std::string_view part) {
      text += part;
      return head.status == kOk && text.size() <= most;
    };
    const int64_t status = http_exchange({request.url, request.token, {}, true}, take).status;
    if (status != kOk) fail_status(request, status);
    LIMPID_CHECK(ResourceError, text.size() <= most,
                 "cannot fetch {}: the answer is longer than {} bytes", request.url, most);
    return text;
  } catch (const HttpFault& fault) {
    throw ResourceError(
        fmt::format("cannot fetch {}: {}; is there a network, and a proxy to name in https_proxy?",
                    request.url, fault.reason));
  }
}

// The pause before another try is 0.1 s, and doubles with each try in a row without a byte: 0.2 s,
// 0.4 s, … So a server that is restarted has some time for it.
bool http_fetch(const HttpRequest& request, const std::string& path, uint64_t n_bytes,
                const HttpProgress& progress) {
  PartialFile file(path);
  if (file.size() > n_bytes) file.begin_anew();
  int n_in_vain = 0;
  int n_restarts = 0;
  while (file.size() < n_bytes) {
    const uint64_t before = file.size();
    const Try result = fetch_rest(request, file, n_bytes, progress);
    if (result.stopped) return false;
    if (file.size() == n_bytes) break;
    const bool no_ranges =
        before > 0 && (result.status == kOk || result.status == kRangeNotSatisfiable);
    if (result.status == kRangeNotSatisfiable) file.begin_anew();
    n_restarts += no_ranges ? 1 : 0;
    LIMPID_CHECK(ResourceError, n_restarts < kTries,
                 "cannot fetch {}: the connection breaks, and the server cannot go on where it did",
                 request.url);
    const bool hopeless = !no_ranges && !result.may_pass;
    if (hopeless && result.fault.empty() && result.status >= 400)
      fail_status(request, result.status);
    n_in_vain = file.size() > before ? 0 : n_in_vain + 1;
    LIMPID_CHECK(
        ResourceError, !hopeless && n_in_vain < kTries,
        "cannot fetch {}: {} of {} bytes came ({}); run the same again to go on", request.url,
        file.size(), n_bytes,
        result.fault.empty() ? fmt::format("HTTP status {}", result.status) : result.fault);
    std::this_thread::sleep_for(std::chrono::milliseconds(100) * (1 << n_in_vain));
  }
  file.sync();
  return true;
}

}  // namespace limpid::cli
