// libcurl's multi interface: curl_multi_perform() does what can be done without waiting, and
// curl_multi_poll() waits for the network, a tenth of a second at most, so that Ctrl-C counts soon.
//
// libcurl pushes: it calls a function when bytes arrive. A conversation wants to pull: "give me the
// next event". So on_body() only appends to `received_`, and read() drives the transfer until
// something is there. One thread does everything, and nothing needs a lock.
#include "cli/http_exchange.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "cli/flags.h"

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

// libcurl copies the texts that it is given, but not the body of a POST.
HttpExchange::HttpExchange(HttpRequest request, GoOn go_on)
    : request_(std::move(request)), go_on_(std::move(go_on)) {
  static const CURLcode ready = curl_global_init(CURL_GLOBAL_DEFAULT);
  if (ready == CURLE_OK) {
    multi_.reset(curl_multi_init());
    easy_.reset(curl_easy_init());
  }
  LIMPID_CHECK(ResourceError, multi_ && easy_, "libcurl cannot be set up");
  set(CURLOPT_URL, request_.url.c_str());
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
  if (!request_.token.empty()) {  // libcurl sends it to no other host to which a redirect leads
    set(CURLOPT_HTTPAUTH, CURLAUTH_BEARER);
    set(CURLOPT_XOAUTH2_BEARER, request_.token.c_str());
  }
  if (request_.is_download) set_up_download();
  if (!request_.json.empty()) set_up_post();
  LIMPID_CHECK(ResourceError, curl_multi_add_handle(multi_.get(), easy_.get()) == CURLM_OK,
               "libcurl cannot be set up");
}

template <typename Value>
void HttpExchange::set(CURLoption option, Value value) {
  curl_easy_setopt(easy_.get(), option, value);
}

void HttpExchange::set_up_download() {
  set(CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
  set(CURLOPT_FOLLOWLOCATION, 1L);
  set(CURLOPT_MAXREDIRS, 5L);
  set(CURLOPT_LOW_SPEED_LIMIT, 1L);
  set(CURLOPT_LOW_SPEED_TIME, kSlowSeconds);
  const std::string range = fmt::format("{}-", request_.first_byte);  // libcurl copies it
  if (request_.first_byte > 0) set(CURLOPT_RANGE, range.c_str());
}

void HttpExchange::set_up_post() {
  // An empty "Expect": a long conversation is sent without asking first.
  for (const char* line : {"Content-Type: application/json", "Expect:"}) {
    curl_slist* longer = curl_slist_append(headers_.get(), line);
    LIMPID_CHECK(ResourceError, longer != nullptr, "libcurl cannot be set up");
    std::ignore = headers_.release();
    headers_.reset(longer);
  }
  set(CURLOPT_HTTPHEADER, headers_.get());
  set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request_.json.size()));
  set(CURLOPT_POSTFIELDS, request_.json.c_str());
}

template <typename Predicate>
void HttpExchange::go_on_until(Predicate is_enough) {
  while (!is_over_ && !is_enough()) {
    was_stopped_ = !go_on_();
    if (was_stopped_) return;
    int n_running = 0;
    curl_multi_perform(multi_.get(), &n_running);
    is_over_ = n_running == 0;
    if (is_over_) end();
    if (!is_over_ && !is_enough())
      curl_multi_poll(multi_.get(), nullptr, 0, kPollMilliseconds, nullptr);
  }
  if (fault_ && !is_enough()) throw HttpFault(*fault_);
}

// Called by libcurl, which is written in C, so this function must not throw.
size_t HttpExchange::on_body(const char* bytes, size_t size, size_t count, void* self) noexcept {
  try {
    static_cast<HttpExchange*>(self)->received_.append(bytes, size * count);
    return size * count;
  } catch (...) {
    return 0;
  }
}

// Called for each line, which ends with a line break. The empty one is the header's last. Another
// header follows that of an interim answer (103 Early Hints) and of a redirect that is followed.
size_t HttpExchange::on_header_line(const char*, size_t size, size_t count, void* self) noexcept {
  auto& exchange = *static_cast<HttpExchange*>(self);
  const long status = exchange.last_status();
  const bool is_followed = exchange.request_.is_download && status / 100 == 3;
  if (size * count <= 2 && status >= 200 && !is_followed) exchange.has_header_ = true;
  return size * count;
}

long HttpExchange::last_status() const {
  long status = 0;
  curl_easy_getinfo(easy_.get(), CURLINFO_RESPONSE_CODE, &status);
  return status;
}

void HttpExchange::end() {
  int n_left = 0;
  const CURLMsg* message = curl_multi_info_read(multi_.get(), &n_left);
  const CURLcode code = message == nullptr ? CURLE_OK : message->data.result;
  if (code == CURLE_OK) {
    has_header_ = true;
    return;
  }
  const std::string reason = curl_easy_strerror(code);
  std::string_view advice;
  if (code == CURLE_COULDNT_CONNECT) advice = "; does the server run, and at this port?";
  if (code == CURLE_SSL_CONNECT_ERROR && !request_.is_download)
    advice = "; does the server speak http?";
  fault_.emplace(fmt::format("{} {}: {}{}", has_header_ ? "the connection broke:" : "cannot reach",
                             request_.url, reason, advice),
                 reason, may_pass(code));
}

int64_t HttpExchange::status() {
  go_on_until([this] { return has_header_; });
  return has_header_ ? last_status() : 0;
}

std::string HttpExchange::content_type() const {
  const char* type = nullptr;
  curl_easy_getinfo(easy_.get(), CURLINFO_CONTENT_TYPE, &type);
  const std::string text = type == nullptr ? "" : type;
  return text.substr(0, text.find(';'));
}

std::optional<std::string> HttpExchange::read() {
  go_on_until([this] { return !received_.empty(); });
  if (received_.empty() || was_stopped_) return std::nullopt;
  return std::exchange(received_, {});
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
