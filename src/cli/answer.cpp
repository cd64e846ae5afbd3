#include "cli/answer.h"

#include <nlohmann/json.hpp>

namespace limpid::cli {
std::string dump_json(const nlohmann::ordered_json& json, int indent) {
  return json.dump(indent, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace limpid::cli
