#include "server/api_keys.h"

#include <openssl/crypto.h>

#include <fstream>

#include "base/check.h"
#include "base/sha256.h"
#include "base/text.h"
#include "server/http_text.h"

namespace limpid {

void ApiKeys::add(std::string_view key) { hashes_.push_back(sha256_of(key)); }

void ApiKeys::add_file(const std::string& path) {
  std::ifstream file(path);
  LIMPID_CHECK(ResourceError, file.is_open(), "[server] cannot read the file of keys {}", path);
  const size_t n_before = hashes_.size();
  for (std::string line; std::getline(file, line);) {
    const std::string_view key = trimmed(line);
    if (!key.empty() && key.front() != '#') add(key);
  }
  LIMPID_CHECK(ArgumentError, hashes_.size() > n_before, "[server] {} holds no key", path);
}

// A comparison that ends at the first difference takes longer the more of a guess is right, and
// over many tries that can be measured. Keys are compared as hashes, which a client cannot steer
// byte by byte, and without an early end. All keys are compared, so that the time does not show
// which one matched.
bool ApiKeys::contains(std::string_view key) const {
  const std::string hash = sha256_of(key);
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
