#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <thread>

#include "base/check.h"
#include "base/text.h"
#include "server/errors.h"
#include "server/http.h"
#include "server/http_connection.h"

namespace limpid {
namespace {

constexpr std::chrono::milliseconds kTick{50};  // how often time limits are looked at
constexpr std::chrono::milliseconds kRetry{100};
constexpr std::chrono::seconds kFarewell{2};  // for clients to close, once all is answered

using Strand = asio::strand<asio::io_context::executor_type>;

Tcp::endpoint endpoint_of(const Strand& strand, const std::string& host, uint16_t port) {
  ErrorCode error;
  Tcp::resolver resolver(strand);
  const auto found = resolver.resolve(host, std::to_string(port), Tcp::resolver::passive, error);
  LIMPID_CHECK(UnsupportedError, !host.ends_with(".sock"),
               "[server] {} is a UNIX socket, which is not supported: give an address", host);
  LIMPID_CHECK(ArgumentError, !error && !found.empty(),
               "[server] '{}' is not an address of this machine: {}", host, error.message());
  return found.begin()->endpoint();
}

// If :: is the only address, it accepts connections over IPv4 too.
Tcp::acceptor listen_at(const Strand& strand, const std::string& host, uint16_t port,
                        bool is_only) {
  const Tcp::endpoint endpoint = endpoint_of(strand, host, port);
  Tcp::acceptor acceptor(strand);
  ErrorCode error, ignored;
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(Tcp::acceptor::reuse_address(true), error);
  if (!error && endpoint.address().is_v6())
    acceptor.set_option(asio::ip::v6_only(!is_only), ignored);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(Tcp::acceptor::max_listen_connections, error);
  LIMPID_CHECK(ResourceError, !error, "[server] cannot listen on {} port {}: {}", host, port,
               error.message());
  return acceptor;
}

// An address that connections come in at. After an error (too few descriptors, say), `retry` waits
// a little before the next accept.
struct Listener {
  Tcp::acceptor acceptor;
  asio::steady_timer retry;
};

// Listens on every address of options.host, always on the port of the first one: with port 0 the
// system chooses that one.
std::vector<Listener> listeners(const Strand& strand, const HttpOptions& options) {
  const std::vector<std::string> hosts = split_list(options.host);
  LIMPID_CHECK(ArgumentError, !hosts.empty(), "[server] no address to listen on");
  std::vector<Listener> listeners;
  for (const std::string& host : hosts) {
    const uint16_t port =
        listeners.empty() ? options.port : listeners.front().acceptor.local_endpoint().port();
    listeners.push_back(
        {listen_at(strand, host, port, hosts.size() == 1), asio::steady_timer(strand)});
  }
  return listeners;
}

std::unique_ptr<asio::ssl::context> tls_context(const HttpOptions& options) {
  LIMPID_CHECK(ArgumentError, options.tls_certificate.empty() == options.tls_key.empty(),
               "[server] TLS needs both a certificate and its key");
  if (options.tls_key.empty()) return nullptr;
  auto context = std::make_unique<asio::ssl::context>(asio::ssl::context::tls_server);
  SSL_CTX_set_min_proto_version(context->native_handle(), TLS1_2_VERSION);
  // A client that comes again brings its session in a ticket. OpenSSL would also keep those of
  // clients that know no tickets, up to 20,480 of them.
  SSL_CTX_set_session_cache_mode(context->native_handle(), SSL_SESS_CACHE_OFF);
  ErrorCode error;
  context->use_certificate_chain_file(options.tls_certificate, error);
  LIMPID_CHECK(ResourceError, !error, "[server] cannot read the certificate {}: {}",
               options.tls_certificate, error.message());
  context->use_private_key_file(options.tls_key, asio::ssl::context::pem, error);
  LIMPID_CHECK(ResourceError, !error, "[server] cannot use the key {} with this certificate: {}",
               options.tls_key, error.message());
  return context;
}

}  // namespace

void HttpShared::tell_failure(std::string_view path) const noexcept {
  try {
    const ApiError error = as_api_error(std::current_exception());
    const std::string reason = error.reason.empty() ? std::string(error.what()) : error.reason;
    if (options.log_failure) options.log_failure(path.empty() ? "a connection" : path, reason);
  } catch (...) {
    return;  // nothing is left to tell it with
  }
}

// The end has three steps, which tick() takes after stop() has set a flag and a time.
//   draining   answers that are under way go on; connections without a request close, new ones only
//              after kFarewell, because a client that has just come is to be told why (503)
//   over       the last answer has ended, or `patience` is used up: the listeners close
//   farewell   clients get kFarewell to close, or less if `patience` ends sooner; then answers that
//              still run are cut off and connections close, no work is left, and the threads end
class HttpServer::Impl {
 public:
  Impl(HttpOptions options, HttpHandler handler)
      : shared_(std::make_shared<HttpShared>()),
        context_(tls_context(options)),
        strand_(asio::make_strand(shared_->io)),
        listeners_(listeners(strand_, options)),
        port_(listeners_.front().acceptor.local_endpoint().port()),
        timer_(strand_) {
    shared_->options = std::move(options);
    shared_->handler = std::move(handler);
    run();
  }
  ~Impl() { stop(std::chrono::seconds(0)); }

  uint16_t port() const { return port_; }
  size_t n_connections() const { return shared_->n_open; }

  // The threads end when nothing is left to do: the acceptor, the timer and all connections are
  // closed.
  void stop(std::chrono::milliseconds patience) {
    if (threads_.empty()) return;
    drain_began_ = Clock::now();
    drain_end_ = drain_began_.load() + patience;
    shared_->is_draining = true;
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }

 private:
  // Several threads run one io_context. What belongs together runs on a strand, which runs one
  // handler at a time on whichever thread is free: there is one for each connection, and one for
  // what this class does. So neither needs locks for its own members.
  void run() {
    asio::dispatch(strand_, [this] {
      for (Listener& listener : listeners_) accept(listener);
      tick();
    });
    const int n_threads = std::max(1, shared_->options.n_threads);
    threads_.reserve(static_cast<size_t>(n_threads));
    try {
      for (int i = 0; i < n_threads; ++i) threads_.emplace_back([this] { work(); });
    } catch (const std::exception& error) {
      stop(std::chrono::seconds(0));  // those that have started use this object
      throw ResourceError(
          fmt::format("[server] cannot start {} threads: {}", n_threads, error.what()));
    }
  }

  // What a handler throws ends neither its thread nor the server.
  void work() {
    while (true) {
      try {
        shared_->io.run();
        return;
      } catch (...) {
        shared_->tell_failure("");
      }
    }
  }

  // The next client is waited for before anything is done for this one, which may throw.
  void accept(Listener& listener) {
    const auto take = [this, &listener](ErrorCode error, Tcp::socket socket) {
      if (!listener.acceptor.is_open()) return;
      if (error) return accept_later(listener);
      accept(listener);
      add(std::move(socket));
    };
    try {
      listener.acceptor.async_accept(asio::make_strand(shared_->io), take);
    } catch (const std::bad_alloc&) {
      accept_later(listener);
    }
  }

  // Most often no descriptor is left. Connections that close free some.
  void accept_later(Listener& listener) {
    listener.retry.expires_after(kRetry);
    listener.retry.async_wait([this, &listener](ErrorCode) {
      if (listener.acceptor.is_open()) accept(listener);
    });
  }

  void add(Tcp::socket socket) {
    if (shared_->n_open >= shared_->options.limits.n_connections && !evict()) {
      refuse(socket);
      return;
    }
    auto connection = std::make_shared<HttpConnection>(shared_, std::move(socket), context_.get());
    {
      const std::lock_guard lock(shared_->mutex);
      shared_->connections.push_back(connection);
    }
    connection->start();
  }

  // Closes the connection that has been waiting the longest for a request's header. Gives false
  // when none is waiting. Browsers keep connections open in case they need them again, so a full
  // server usually holds many that do nothing, and a new client comes before them.
  bool evict() {
    const auto open = connections();
    const auto longest = std::ranges::min_element(open, {}, &HttpConnection::waits_since);
    if (longest == open.end() || (*longest)->waits_since() == kNever) return false;
    (*longest)->abort();
    return true;
  }

  static void refuse(Tcp::socket& socket) {
    static constexpr std::string_view kBusy =
        "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nRetry-After: 1\r\n"
        "Connection: close\r\n\r\n";
    ErrorCode ignored;
    socket.non_blocking(true, ignored);
    socket.write_some(asio::buffer(kBusy), ignored);
  }

  // Those that live; forgets the others.
  std::vector<std::shared_ptr<HttpConnection>> connections() {
    std::vector<std::shared_ptr<HttpConnection>> living;
    const std::lock_guard lock(shared_->mutex);
    std::erase_if(shared_->connections, [&](const auto& connection) {
      auto alive = connection.lock();
      if (alive) living.push_back(std::move(alive));
      return connection.expired();
    });
    return living;
  }

  // The next one is set first: the rest may throw.
  void tick() {
    timer_.expires_after(kTick);
    timer_.async_wait([this](ErrorCode error) {
      if (!error) tick();
    });
    const auto now = Clock::now();
    const bool is_draining = shared_->is_draining;
    const bool is_over = is_draining && (shared_->n_answers == 0 || now >= drain_end_.load());
    for (const auto& connection : connections()) {
      connection->check_time(now);
      if (is_draining)
        connection->close_if_idle_since(is_over ? now
                                                : std::max(drain_began_.load(), now - kFarewell));
      if (is_over && now >= drain_end_.load()) connection->cut_off();
    }
    if (is_over) {
      ErrorCode ignored;
      for (Listener& listener : listeners_) listener.acceptor.close(ignored);
      drain_end_ = std::min(drain_end_.load(), now + kFarewell);
      if (shared_->n_open == 0) timer_.cancel();
    }
  }

  const std::shared_ptr<HttpShared> shared_;  // first: the others need its io_context
  std::unique_ptr<asio::ssl::context> context_;
  const Strand strand_;  // of the listeners and the timer
  std::vector<Listener> listeners_;
  uint16_t port_;
  asio::steady_timer timer_;
  Deadline drain_began_ = kNever, drain_end_ = kNever;
  std::vector<std::thread> threads_;  // use the others
};

HttpServer::HttpServer(HttpOptions options, HttpHandler handler)
    : impl_(std::make_unique<Impl>(std::move(options), std::move(handler))) {}
HttpServer::~HttpServer() = default;
uint16_t HttpServer::port() const { return impl_->port(); }
void HttpServer::stop(std::chrono::milliseconds patience) { impl_->stop(patience); }
size_t HttpServer::n_connections() const { return impl_->n_connections(); }

}  // namespace limpid
