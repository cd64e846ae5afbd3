#include "server/sse.h"

namespace limpid {

// JSON in one line has no line break, which would need another "data:".
std::string sse_event(const Json& data) { return "data: " + dump_json(data) + "\n\n"; }

std::string sse_event(std::string_view name, const Json& data) {
  return "event: " + std::string(name) + "\n" + sse_event(data);
}

}  // namespace limpid
