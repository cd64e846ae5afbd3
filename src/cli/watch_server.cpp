// The page asks for /state?after=N, where N is the state that it has. The answer waits until there
// is a newer state ("long polling"). So the page shows a step as soon as it is done, and does not
// ask more often than there are steps.
#include "cli/watch_server.h"

#include "base/check.h"
#include "cli/flags.h"

namespace limpid::cli {
namespace {

// A cache must not keep what changes with each step, and another page must not frame it.
HttpAnswer answer_of(int status, const char* content_type, std::string body) {
  return {status,
          content_type,
          std::move(body),
          {{"Cache-Control", "no-store"},
           {"Content-Security-Policy", "frame-ancestors 'none'"},
           {"Referrer-Policy", "no-referrer"},
           {"X-Content-Type-Options", "nosniff"}}};
}
constexpr const char* kText = "text/plain; charset=utf-8";

int64_t version_of(const HttpRequest& request) {
  const std::string text = query_value(request.query, "after");
  int64_t version = -1;
  LIMPID_CHECK(ArgumentError, text.empty() || read_value(text, {}, version).empty(),
               "after: must be a number");
  return version;
}

void handle(LiveRun& run, const std::function<std::string()>& page, bool takes_commands,
            const HttpRequest& request, const std::shared_ptr<HttpReply>& reply) {
  const bool gets = request.method == "GET" || request.method == "HEAD";
  if (gets && request.path == "/") {
    reply->send(answer_of(200, "text/html; charset=utf-8", page()));
  } else if (gets && request.path == "/state") {
    run.ask(version_of(request), [reply](const std::string& json) {
      reply->send(answer_of(200, "application/json", json));
    });
  } else if (request.method == "POST" && request.path == "/command" && takes_commands) {
    run.command(request.body);
    reply->send(answer_of(204, kText, {}));
  } else {
    reply->send(answer_of(404, kText, "not found\n"));
  }
}

HttpOptions options_of(int64_t port) {
  HttpOptions options;
  options.port = static_cast<uint16_t>(port);
  options.limits.unsent_bytes = 16 << 20;  // a state of a large network
  return options;
}

}  // namespace

WatchServer::WatchServer(LiveRun& run, std::function<std::string()> page, int64_t port,
                         bool takes_commands)
    : server_(options_of(port),
              [&run, page = std::move(page), takes_commands](
                  const HttpRequest& request, const std::shared_ptr<HttpReply>& reply) {
                try {
                  handle(run, page, takes_commands, request, reply);
                } catch (const ArgumentError& error) {
                  reply->send(answer_of(400, kText, error.what()));
                }
              }) {}

std::string WatchServer::address() const {
  return fmt::format("http://127.0.0.1:{}/", server_.port());
}

}  // namespace limpid::cli
