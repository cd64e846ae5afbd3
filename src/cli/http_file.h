// Downloads over HTTP, which continue where an earlier one ended.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "cli/http_exchange.h"

namespace limpid::cli {

// Called with the number of bytes in the file; returning false stops the transfer.
using HttpProgress = std::function<bool(uint64_t done)>;

// The answer's body. Throws ResourceError, which names the status or the fault, also for a body of
// more than `most` bytes.
std::string http_get(const HttpRequest& request, uint64_t most);

// Fetches a file of `n_bytes` into `path`. Bytes that `path` holds already are kept, and only the
// rest is requested; if the server sends the whole file instead, `path` is written anew. After a
// broken connection it tries again. It fails after five tries in a row without a byte. Returns
// false when `progress` stopped it; the bytes so far are kept. Throws ResourceError.
bool http_fetch(const HttpRequest& request, const std::string& path, uint64_t n_bytes,
                const HttpProgress& progress);

}  // namespace limpid::cli
