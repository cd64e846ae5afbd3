// Server-sent events (WHATWG HTML, section 9.2): how an answer is streamed over HTTP.
#pragma once

#include <string>
#include <string_view>

#include "server/errors.h"

namespace limpid {

inline constexpr const char* kEventStream = "text/event-stream";

// "data: {…}\n\n"
std::string sse_event(const Json& data);
// "event: TYPE\ndata: {"type":"TYPE",…}\n\n"
std::string sse_event(std::string_view type, const Json& members);
// What OpenAI's streams end with.
inline constexpr std::string_view kSseDone = "data: [DONE]\n\n";

}  // namespace limpid
