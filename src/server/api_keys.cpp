#include "server/api_keys.h"

#include <openssl/crypto.h>

#include <fstream>

#include "base/check.h"
#include "base/sha256.h"
#include "server/http_text.h"

namespace limpid {
namespace {

std::string hash_of(std::string_view key) {
  Sha256 hash;
  hash.update(std::as_bytes(std::span(key)));
  return hash.hex();
}

}  // namespace

void ApiKeys::add(std::string_view key) { hashes_.push_back(hash_of(key)); }

void ApiKeys::add_file(const std::string& path) {
  std::ifstream file(path);
  LIMPID_CHECK(ResourceError, file.is_open(), "[server] cannot read the file of keys {}", path);
  const size_t n_before = hashes_.size();
  for (std::string line; std::getline(file, line);) {
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.pop_back();
    if (!line.empty() && line.front() != '#') add(line);
  }
  LIMPID_CHECK(ArgumentError, hashes_.size() > n_before, "[server] {} holds no key", path);
}

// A comparison that ends at the first difference takes longer the more of a guess is right, and
// over many tries that can be measured. Keys are compared as hashes, which a client cannot steer
// byte by byte, and without an early end. All keys are looked at, so that the time does not tell
// which one it was.
bool ApiKeys::contains(std::string_view key) const {
  const std::string hash = hash_of(key);
  bool found = false;
  for (const std::string& known : hashes_)
    found = CRYPTO_memcmp(hash.data(), known.data(), hash.size()) == 0 || found;
  return found;
}

bool ApiKeys::allow(const HttpRequest& request) const {
  if (empty()) return true;
  std::string_view key = request.header("X-Api-Key");
  const std::string_view authorization = request.header("Authorization");
  const std::string_view scheme = authorization.substr(0, 7);
  if (same_name(scheme, "Bearer ")) key = authorization.substr(scheme.size());
  return contains(key);
}

}  // namespace limpid
