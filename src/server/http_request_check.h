// Which requests are refused for their headers, before their body is read.
#pragma once

#include <string_view>

#include "server/http.h"

namespace limpid {

struct HttpProblem {
  int status = 0;  // 0: none
  std::string_view text{};
};

// Headers that servers and proxies could read differently (how long is the body?), and what is not
// supported.
HttpProblem header_problem(const HttpRequest& request, bool is_http_1_0);

// Who asks: see HttpOptions::allowed_hosts and allowed_origins.
HttpProblem sender_problem(const HttpRequest& request, const HttpOptions& options);

}  // namespace limpid
