// The web page (src/server/web/), which the program carries with it.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "server/http.h"

namespace limpid {

struct WebFile {
  std::string_view path;  // "/style.css"
  std::string_view content_type;
  std::string_view bytes;
  std::string_view etag;  // with its quotes; changes with the bytes (RFC 9110, section 8.8.3)
};

// In the order of their paths. A generated source defines it (cmake/limpid_embed_folder.cmake).
std::span<const WebFile> web_files();

// The answer to a GET or HEAD of a file of the page ("/" is its index), with a policy that keeps
// the browser from running or loading what is not one of these files. 304 without bytes where the
// browser has the file. Nothing when the page has no such file, or for another method.
std::optional<HttpAnswer> web_answer(const HttpRequest& request);
bool is_web_path(std::string_view path);  // of a file of the page

}  // namespace limpid
