#include "cli/pip_failure.h"

#include <algorithm>
#include <array>
#include <span>

namespace limpid::cli {
namespace {

using Words = std::span<const std::string_view>;

constexpr std::string_view kFull[] = {"No space left on device", "Disk quota exceeded"};
constexpr std::string_view kCertificate[] = {"CERTIFICATE_VERIFY_FAILED"};
constexpr std::string_view kUnreachable[] = {"Failed to establish a new connection",
                                             "Temporary failure in name resolution",
                                             "Network is unreachable",
                                             "ConnectTimeoutError",
                                             "ReadTimeoutError",
                                             "Connection refused",
                                             "Connection reset by peer",
                                             "Cannot connect to proxy"};
// Last, because pip ends with it after every other failure too.
constexpr std::string_view kUnknown[] = {"No matching distribution found"};

struct Reason {
  Words signs;  // any of them in the log
  std::string_view text;
};
constexpr std::array kReasons = {
    Reason{kFull, "the disk is full: free some space, or set XDG_CACHE_HOME to another disk"},
    Reason{kCertificate,
           "the index shows a certificate that this machine does not trust: name the right one "
           "with `pip config set global.cert FILE`"},
    Reason{kUnreachable,
           "pip does not reach its index: is there a network, and a proxy to name in https_proxy?"},
    Reason{kUnknown, "the package is not in pip's index: does `pip config list` name a mirror?"},
};

std::string last_line(std::string_view log) {
  const size_t end = log.find_last_not_of(" \n\r");
  if (end == log.npos) return "pip says nothing";
  log = log.substr(0, end + 1);
  return std::string(log.substr(log.rfind('\n') + 1));
}

}  // namespace

std::string why_pip_failed(std::string_view log) {
  for (const Reason& reason : kReasons) {
    const auto in_log = [log](std::string_view sign) { return log.find(sign) != log.npos; };
    if (std::ranges::any_of(reason.signs, in_log)) return std::string(reason.text);
  }
  return last_line(log);
}

}  // namespace limpid::cli
