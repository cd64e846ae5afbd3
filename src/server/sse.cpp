#include "server/sse.h"

namespace limpid {

// JSON in one line has no line break, which would need another "data:".
std::string sse_event(const Json& data) { return "data: " + dump_json(data) + "\n\n"; }

std::string sse_event(std::string_view type, const Json& members) {
  Json data = {{"type", type}};
  data.update(members);
  return "event: " + std::string(type) + "\n" + sse_event(data);
}

}  // namespace limpid
