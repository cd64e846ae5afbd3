#include "server/web_files.h"

#include <algorithm>

namespace limpid {
namespace {

constexpr const char* kPolicy =
    "default-src 'self'; base-uri 'none'; object-src 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'";

// If-None-Match: "*", or a list of tags, each perhaps marked W/ (RFC 9110, section 13.1.2). Tags of
// this program hold no comma, so that looking for the tag with its quotes is enough.
bool has(std::string_view if_none_match, std::string_view etag) {
  return if_none_match == "*" || if_none_match.find(etag) != if_none_match.npos;
}

// Null for a path of no file.
const WebFile* file_at(std::string_view path) {
  const auto files = web_files();
  const auto file = std::ranges::find(files, path == "/" ? "/index.html" : path, &WebFile::path);
  return file == files.end() ? nullptr : &*file;
}

}  // namespace

bool is_web_path(std::string_view path) { return file_at(path) != nullptr; }

std::optional<HttpAnswer> web_answer(const HttpRequest& request) {
  const WebFile* const file = file_at(request.path);
  const bool reads = request.method == "GET" || request.method == "HEAD";
  if (file == nullptr || !reads) return std::nullopt;

  HttpAnswer answer{200, std::string(file->content_type), {}, {}};
  answer.headers = {{"ETag", std::string(file->etag)},
                    {"Cache-Control", "no-cache"},  // keep it, and ask whether it changed
                    {"Content-Security-Policy", kPolicy},
                    {"Referrer-Policy", "no-referrer"},
                    {"X-Content-Type-Options", "nosniff"}};
  if (has(request.header("If-None-Match"), file->etag)) {
    answer.status = 304;
  } else {
    answer.body = file->bytes;
  }
  return answer;
}

}  // namespace limpid
