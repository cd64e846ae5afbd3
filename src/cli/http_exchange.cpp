// libcurl's multi interface: curl_multi_perform() does what can be done without waiting, and
// curl_multi_poll() waits for the network, a tenth of a second at most, so that Ctrl-C counts soon.
// One thread does everything, and nothing needs a lock.
#include "cli/http_exchange.h"

#include <curl/curl.h>

#include <exception>
#include <memory>

#include "base/check.h"
#include "cli/flags.h"

namespace limpid::cli {
namespace {

// Times after which a connection counts as broken. A slow one that still delivers bytes is not.
constexpr long kConnectSeconds = 20;
constexpr long kSlowSeconds = 30;  // of a download, without a byte
constexpr int kPollMilliseconds = 100;

template <auto release>
struct Release {
  void operator()(auto* handle) const { release(handle); }
};

// The last one is released first, which also takes it out of `multi`.
struct Handles {
  std::unique_ptr<curl_slist, Release<curl_slist_free_all>> headers;
  std::unique_ptr<CURLM, Release<curl_multi_cleanup>> multi{curl_multi_init()};
  std::unique_ptr<CURL, Release<curl_easy_cleanup>> easy{curl_easy_init()};

  template <typename Value>
  void set(CURLoption option, Value value) {
    curl_easy_setopt(easy.get(), option, value);
  }
};

// What on_body() needs, and what it says.
struct Taker {
  CURL* easy;
  const std::function<bool(const HttpHead& head, std::string_view part)>& take;
  bool has_enough = false;
  std::exception_ptr error{};  // what `take` threw
};

// Faults that another try may not meet. A host that is unknown, or a certificate that is not
// trusted, will be so the next time too.
bool may_pass(CURLcode code) {
  return code == CURLE_PARTIAL_FILE || code == CURLE_RECV_ERROR || code == CURLE_GOT_NOTHING ||
         code == CURLE_OPERATION_TIMEDOUT || code == CURLE_COULDNT_CONNECT ||
         code == CURLE_SEND_ERROR || code == CURLE_HTTP2 || code == CURLE_HTTP2_STREAM;
}

HttpHead head_of(CURL* easy) {
  long status = 0;
  const char* type = nullptr;
  curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
  curl_easy_getinfo(easy, CURLINFO_CONTENT_TYPE, &type);
  const std::string text = type == nullptr ? "" : type;
  return {status, text.substr(0, text.find(';'))};
}

// Called by libcurl, which is written in C, so this function must not throw.
size_t on_body(const char* bytes, size_t size, size_t count, void* self) noexcept {
  auto& taker = *static_cast<Taker*>(self);
  try {
    taker.has_enough = !taker.take(head_of(taker.easy), {bytes, size * count});
  } catch (...) {
    taker.error = std::current_exception();
  }
  return taker.has_enough || taker.error ? 0 : size * count;  // 0 ends the exchange
}

// libcurl copies the texts that it is given, but not the body of a POST.
void set_up(const HttpRequest& request, Handles& handles) {
  handles.set(CURLOPT_URL, request.url.c_str());
  handles.set(CURLOPT_PROTOCOLS_STR, "http,https");
  handles.set(CURLOPT_NOSIGNAL, 1L);
  handles.set(CURLOPT_CONNECTTIMEOUT, kConnectSeconds);
  handles.set(CURLOPT_USERAGENT, "limpid/" LIMPID_VERSION);
  // OpenSSL's variable for more certificates than the system's, as other programs read it.
  const std::string certificates = environment("SSL_CERT_FILE");
  if (!certificates.empty()) handles.set(CURLOPT_CAINFO, certificates.c_str());
  if (!request.token.empty()) {  // libcurl sends it to no other host to which a redirect leads
    handles.set(CURLOPT_HTTPAUTH, CURLAUTH_BEARER);
    handles.set(CURLOPT_XOAUTH2_BEARER, request.token.c_str());
  }
  if (request.is_download) {
    handles.set(CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
    handles.set(CURLOPT_FOLLOWLOCATION, 1L);
    handles.set(CURLOPT_MAXREDIRS, 5L);
    handles.set(CURLOPT_LOW_SPEED_LIMIT, 1L);
    handles.set(CURLOPT_LOW_SPEED_TIME, kSlowSeconds);
    const std::string range = fmt::format("{}-", request.first_byte);
    if (request.first_byte > 0) handles.set(CURLOPT_RANGE, range.c_str());
  }
  if (!request.json.empty()) {
    // An empty "Expect": a long conversation is sent without asking first.
    handles.headers.reset(curl_slist_append(nullptr, "Content-Type: application/json"));
    LIMPID_CHECK(ResourceError,
                 handles.headers && curl_slist_append(handles.headers.get(), "Expect:"),
                 "libcurl cannot be set up");
    handles.set(CURLOPT_HTTPHEADER, handles.headers.get());
    handles.set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.json.size()));
    handles.set(CURLOPT_POSTFIELDS, request.json.c_str());
  }
}

[[noreturn]] void fail(const HttpRequest& request, CURLcode code, bool is_answered) {
  const std::string reason = curl_easy_strerror(code);
  std::string_view advice;
  if (code == CURLE_COULDNT_CONNECT) advice = "; does the server run, and at this port?";
  if (code == CURLE_SSL_CONNECT_ERROR && !request.is_download)
    advice = "; does the server speak http?";
  throw HttpFault(fmt::format("{} {}: {}{}", is_answered ? "the connection broke:" : "cannot reach",
                              request.url, reason, advice),
                  reason, may_pass(code));
}

}  // namespace

HttpHead http_exchange(const HttpRequest& request,
                       const std::function<bool(const HttpHead& head, std::string_view part)>& take,
                       const std::function<bool()>& go_on) {
  static const CURLcode ready = curl_global_init(CURL_GLOBAL_DEFAULT);
  Handles handles;
  CURL* const easy = handles.easy.get();
  CURLM* const multi = handles.multi.get();
  LIMPID_CHECK(ResourceError, ready == CURLE_OK && easy && multi, "libcurl cannot be set up");
  set_up(request, handles);
  Taker taker{easy, take};
  handles.set(CURLOPT_WRITEFUNCTION, on_body);
  handles.set(CURLOPT_WRITEDATA, &taker);
  LIMPID_CHECK(ResourceError, curl_multi_add_handle(multi, easy) == CURLM_OK,
               "libcurl cannot be set up");
  for (int n_running = 1; n_running > 0;) {
    if (!go_on()) return head_of(easy);
    curl_multi_perform(multi, &n_running);
    if (n_running > 0) curl_multi_poll(multi, nullptr, 0, kPollMilliseconds, nullptr);
  }
  if (taker.error) std::rethrow_exception(taker.error);
  int n_left = 0;
  const CURLMsg* message = curl_multi_info_read(multi, &n_left);
  const CURLcode code = message == nullptr ? CURLE_OK : message->data.result;
  HttpHead head = head_of(easy);
  if (code != CURLE_OK && !taker.has_enough) fail(request, code, head.status != 0);
  return head;
}

}  // namespace limpid::cli
