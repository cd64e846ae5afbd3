// The page of a training that runs: --watch.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "server/http.h"
#include "train/watch/live_run.h"

namespace limpid::cli {

// Serves on 127.0.0.1, for Hosts and Origins of this machine only:
//   GET /                    the page
//   GET /state?after=N       LiveRun::ask(N)
//   POST /command            LiveRun::command, where `takes_commands`
class WatchServer {
 public:
  // `page` is called for each GET of it, on a thread of the server. Port 0: one that is free.
  // Throws ResourceError.
  WatchServer(LiveRun& run, std::function<std::string()> page, int64_t port, bool takes_commands);

  // "http://127.0.0.1:40123/".
  std::string address() const;
  // Ends when the answers under way have been sent.
  void stop() { server_.stop(std::chrono::seconds(2)); }

 private:
  HttpServer server_;
};

}  // namespace limpid::cli
