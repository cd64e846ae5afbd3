// libcurl's multi interface: curl_multi_perform() does what can be done without waiting, and
// curl_multi_poll() waits for the network, a tenth of a second at most, so that Ctrl-C counts soon.
//
// libcurl pushes: it calls a function when bytes arrive. A conversation wants to pull: "give me the
// next event". So on_body() only appends to `received`, and read() drives the transfer until
// something is there. One thread does everything, and nothing needs a lock.
#include "cli/http_exchange.h"

#include <curl/curl.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "cli/options.h"

namespace limpid::cli {
namespace {

// Times after which a connection counts as broken. A slow one that still delivers bytes is not.
constexpr long kConnectSeconds = 20;
constexpr long kSlowSeconds = 30;  // of a download, without a byte
constexpr int kPollMilliseconds = 100;

// Faults that another try may not meet. A host that is unknown, or a certificate that is not
// trusted, will be so the next time too.
bool may_pass(CURLcode code) {
  return code == CURLE_PARTIAL_FILE || code == CURLE_RECV_ERROR || code == CURLE_GOT_NOTHING ||
         code == CURLE_OPERATION_TIMEDOUT || code == CURLE_COULDNT_CONNECT ||
         code == CURLE_SEND_ERROR || code == CURLE_HTTP2 || code == CURLE_HTTP2_STREAM;
}

}  // namespace

struct HttpExchange::Transfer {
  HttpRequest request;
  std::string received;
  GoOn go_on;
  CURLM* multi = nullptr;
  CURL* easy = nullptr;
  curl_slist* headers = nullptr;
  bool has_header = false;  // of the answer, whole
  bool is_over = false;
  bool was_stopped = false;  // by go_on
  std::optional<HttpFault> fault;

  Transfer() = default;
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;
  ~Transfer() {
    if (multi != nullptr && easy != nullptr) curl_multi_remove_handle(multi, easy);
    curl_easy_cleanup(easy);
    curl_multi_cleanup(multi);
    curl_slist_free_all(headers);
  }

  template <typename Value>
  void set(CURLoption option, Value value) const {
    curl_easy_setopt(easy, option, value);
  }

  void add_header(const char* line) {
    curl_slist* longer = curl_slist_append(headers, line);
    LIMPID_CHECK(ResourceError, longer != nullptr, "libcurl cannot be set up");
    headers = longer;
  }

  void start() {
    static const CURLcode ready = curl_global_init(CURL_GLOBAL_DEFAULT);
    if (ready == CURLE_OK) {
      multi = curl_multi_init();
      easy = curl_easy_init();
    }
    LIMPID_CHECK(ResourceError, multi != nullptr && easy != nullptr, "libcurl cannot be set up");
    set(CURLOPT_URL, request.url.c_str());
    set(CURLOPT_PROTOCOLS_STR, "http,https");
    set(CURLOPT_NOSIGNAL, 1L);
    set(CURLOPT_CONNECTTIMEOUT, kConnectSeconds);
    set(CURLOPT_USERAGENT, "limpid/" LIMPID_VERSION);
    set(CURLOPT_WRITEFUNCTION, on_body);
    set(CURLOPT_WRITEDATA, this);
    set(CURLOPT_HEADERFUNCTION, on_header_line);
    set(CURLOPT_HEADERDATA, this);
    // OpenSSL's variable for more certificates than the system's, as other programs read it.
    const std::string certificates = environment("SSL_CERT_FILE");
    if (!certificates.empty()) set(CURLOPT_CAINFO, certificates.c_str());
    if (!request.token.empty()) {  // libcurl sends it to no other host to which a redirect leads
      set(CURLOPT_HTTPAUTH, CURLAUTH_BEARER);
      set(CURLOPT_XOAUTH2_BEARER, request.token.c_str());
    }
    if (request.is_download) set_up_download();
    if (!request.json.empty()) set_up_post();
    LIMPID_CHECK(ResourceError, curl_multi_add_handle(multi, easy) == CURLM_OK,
                 "libcurl cannot be set up");
  }

  void set_up_download() const {
    set(CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
    set(CURLOPT_FOLLOWLOCATION, 1L);
    set(CURLOPT_MAXREDIRS, 5L);
    set(CURLOPT_LOW_SPEED_LIMIT, 1L);
    set(CURLOPT_LOW_SPEED_TIME, kSlowSeconds);
    const std::string range = fmt::format("{}-", request.first_byte);  // libcurl copies it
    if (request.first_byte > 0) set(CURLOPT_RANGE, range.c_str());
  }

  void set_up_post() {
    add_header("Content-Type: application/json");
    add_header("Expect:");  // a long conversation is sent without asking first
    set(CURLOPT_HTTPHEADER, headers);
    set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.json.size()));
    set(CURLOPT_POSTFIELDS, request.json.c_str());
  }

  // Waits until `is_enough` holds, the exchange has ended or `go_on` ended it. What came before a
  // connection broke is given first, then the fault.
  template <typename Predicate>
  void go_on_until(Predicate is_enough) {
    while (!is_over && !is_enough()) {
      was_stopped = !go_on();
      if (was_stopped) return;
      int n_running = 0;
      curl_multi_perform(multi, &n_running);
      is_over = n_running == 0;
      if (is_over) end();
      if (!is_over && !is_enough()) curl_multi_poll(multi, nullptr, 0, kPollMilliseconds, nullptr);
    }
    if (fault && !is_enough()) throw HttpFault(*fault);
  }

  // Called by libcurl, which is written in C, so this function must not throw.
  static size_t on_body(const char* bytes, size_t size, size_t count, void* context) noexcept {
    try {
      static_cast<Transfer*>(context)->received.append(bytes, size * count);
      return size * count;
    } catch (...) {
      return 0;
    }
  }

  // Called for each line, which ends with a line break. The empty one is the header's last. Another
  // header follows that of an interim answer (103 Early Hints) and of a redirect that is followed.
  static size_t on_header_line(const char*, size_t size, size_t count, void* context) noexcept {
    auto& transfer = *static_cast<Transfer*>(context);
    const long status = transfer.status();
    const bool is_followed = transfer.request.is_download && status / 100 == 3;
    if (size * count <= 2 && status >= 200 && !is_followed) transfer.has_header = true;
    return size * count;
  }

  long status() const {
    long status = 0;
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    return status;
  }

  void end() {
    int n_left = 0;
    const CURLMsg* message = curl_multi_info_read(multi, &n_left);
    const CURLcode code = message == nullptr ? CURLE_OK : message->data.result;
    if (code == CURLE_OK) {
      has_header = true;
      return;
    }
    const std::string reason = curl_easy_strerror(code);
    fault.emplace(
        fmt::format(
            "{} {}: {}{}", has_header ? "the connection broke:" : "cannot reach", request.url,
            reason,
            code == CURLE_COULDNT_CONNECT ? "; does the server run, and at this port?" : ""),
        reason, may_pass(code));
  }
};

HttpExchange::HttpExchange(const HttpRequest& request, GoOn go_on)
    : transfer_(std::make_unique<Transfer>()) {
  transfer_->request = request;
  transfer_->go_on = std::move(go_on);
  transfer_->start();
}

HttpExchange::~HttpExchange() = default;

int64_t HttpExchange::status() {
  transfer_->go_on_until([this] { return transfer_->has_header; });
  return transfer_->has_header ? transfer_->status() : 0;
}

std::string HttpExchange::content_type() const {
  const char* type = nullptr;
  curl_easy_getinfo(transfer_->easy, CURLINFO_CONTENT_TYPE, &type);
  const std::string text = type == nullptr ? "" : type;
  return text.substr(0, text.find(';'));
}

std::optional<std::string> HttpExchange::read() {
  transfer_->go_on_until([this] { return !transfer_->received.empty(); });
  if (transfer_->received.empty() || transfer_->was_stopped) return std::nullopt;
  return std::exchange(transfer_->received, {});
}

std::string HttpExchange::read_all(size_t most) {
  std::string all;
  while (all.size() < most) {
    const std::optional<std::string> part = read();
    if (!part) break;
    all += *part;
  }
  all.resize(std::min(all.size(), most));
  return all;
}

}  // namespace limpid::cli
