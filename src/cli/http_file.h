// Files over HTTP that continue where they broke off.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace limpid::cli {

struct HttpRequest {
  std::string url;
  std::string token;  // sent as a bearer token to this host only; "": none
};

// Called with the bytes that are there; returning false stops the transfer.
using HttpProgress = std::function<bool(uint64_t done)>;

// Called with the next bytes of an answer. What it throws ends the transfer and reaches the caller.
using HttpSink = std::function<void(std::string_view part)>;

// Gives the answer's body to `take`. Throws ResourceError that names the status or the fault, also
// for a body of more than `most` bytes.
void http_get(const HttpRequest& request, uint64_t most, const HttpSink& take);
// The same, in one string.
std::string http_get(const HttpRequest& request, uint64_t most);

// Fetches into `path`. What it holds already is kept and only the rest is asked for; a server that
// sends the whole file all the same begins it anew. A connection that breaks is taken up again, up
// to `n_tries` times in all as long as nothing comes. At most `n_bytes` are taken. False when
// `progress` stopped it (what came is kept). Throws ResourceError.
bool http_fetch(const HttpRequest& request, const std::string& path, uint64_t n_bytes,
                const HttpProgress& progress, int n_tries = 5);

}  // namespace limpid::cli
