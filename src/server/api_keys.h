// Who may use the server.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "server/http.h"

namespace limpid {

// Only hashes of the keys are kept. A key is compared with all of them, in a time that does not
// depend on the keys: an attacker who could measure how much of a guess is right would need few
// guesses.
class ApiKeys {
 public:
  void add(std::string_view key);
  // Adds the lines of a file, without the blanks around them. Empty lines and those that begin with
  // # are left out. Throws ResourceError, and ArgumentError for a file without a key.
  void add_file(const std::string& path);

  bool empty() const { return hashes_.empty(); }
  bool contains(std::string_view key) const;
  // Whether the request carries one of the keys, as "Authorization: Bearer KEY" or "X-Api-Key:
  // KEY". Without keys, true for every request.
  bool allow(const HttpRequest& request) const;

 private:
  std::vector<std::string> hashes_;  // SHA-256, in hexadecimal digits
};

}  // namespace limpid
